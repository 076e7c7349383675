// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/config/preset_facts.h"

#include <fmt/format.h>

#include <sstream>

#include "convoy/apps/front/build_facts.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/model/sizing/compute_dtype.h"
#include "convoy/model/sizing/training_request.h"

namespace convoy::apps {
namespace {

constexpr std::string_view kMachineLine = "# machine: ";

void add_machine(const std::string& text, PresetFacts& preset) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with('#');) {
    if (!line.starts_with(kMachineLine)) continue;
    const std::string name = line.substr(kMachineLine.size());
    preset.machine = sizing::known_machine(name);
    CONVOY_INVARIANT(preset.machine != nullptr,
                     "preset {} is for `{}`, which is not in the table of machines", preset.name,
                     name);
  }
  if (preset.machine == nullptr) return;
  settings::resolve_train(preset.settings, {.presets = preset_texts(), .preset = preset.name});
  const auto model = sizing::known_model(preset.settings.model.name);
  CONVOY_INVARIANT(model.has_value(),
                   "preset {} trains `{}`, whose sizes are not in the table of models", preset.name,
                   preset.settings.model.name);
  sizing::EstimateRequest request = estimate_request(preset.settings, *preset.machine);
  sizing::settle_recompute(*model, preset.settings, preset.machine->device_bytes, request);
  preset.memory = sizing::estimate_memory(*model, request);
}

std::string batch_text(const settings::TrainSettings& settings) {
  const settings::TrainingSettings& train = settings.train;
  if (train.batch_size.is_auto()) return "auto";
  return fmt::format("{} x {}", train.batch_rows(),
                     std::max<int64_t>(1, train.grad_accum.value.value_or(1)));
}

}  // namespace

sizing::EstimateRequest estimate_request(const settings::TrainSettings& settings,
                                         const sizing::Machine& machine) {
  return sizing::request_in(settings, machine,
                            sizing::choose_training_dtype(settings, machine, {}).dtype);
}

std::vector<PresetFacts> preset_facts() {
  std::vector<PresetFacts> presets;
  for (const auto& [name, text] : preset_texts()) {
    PresetFacts preset{.name = name};
    if (text.starts_with("# ")) preset.summary = text.substr(2, text.find('\n') - 2);
    add_machine(text, preset);
    presets.push_back(std::move(preset));
  }
  return presets;
}

std::string machine_presets_text(const std::vector<PresetFacts>& presets) {
  std::string text = fmt::format(
      "Presets of machines; memory of a device, by formula (`convoy train` plans and measures):\n"
      "{:<16} {:<30} {:<26} {:<12} {:<8} {:<10} {}\n",
      "name", "model", "machine", "mode", "strategy", "batch", "memory");
  for (const PresetFacts& preset : presets) {
    if (preset.machine == nullptr) continue;
    text +=
        fmt::format("{:<16} {:<30} {:<26} {:<12} {:<8} {:<10} {} of {}\n", preset.name,
                    preset.settings.model.name, preset.machine->words, preset.settings.tuning.mode,
                    estimate_request(preset.settings, *preset.machine).sharing.strategy,
                    batch_text(preset.settings), telemetry::bytes_text(preset.memory.total_bytes()),
                    telemetry::bytes_text(preset.machine->device_bytes));
  }
  return text;
}

}  // namespace convoy::apps
