// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/preset_facts.h"

#include <fmt/format.h>

#include <sstream>

#include "convoy/apps/front/build_facts.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/core/telemetry/progress.h"

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
  settle_recompute(*model, preset.settings, preset.machine->device_bytes, request);
  preset.memory = sizing::estimate_memory(*model, request);
}

// Bytes of both moments and their scales per block of 256 (optim/state_format).
int64_t moment_bytes_of_256(const std::string& type) {
  if (type == "int8") return 520;
  return type == "bf16" ? 1024 : 2048;
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
  const settings::TrainingSettings& train = settings.train;
  sizing::EstimateRequest request{
      .mode = settings.tuning.mode,
      .quantization = settings.tuning.quantization.format(settings.tuning.mode == "qlora"),
      .double_quant = settings.tuning.quantization.double_quant,
      .dtype = settings.model.dtype != "auto" ? settings.model.dtype
               : train.computes_in_bf16()     ? "bf16"
                                              : "fp32",
      .lora_rank = settings.tuning.lora.r,
      .dora = settings.tuning.lora.use_dora,
      .drops_dora = settings.tuning.lora.dropout > 0,
      .sharing =
          sizing::sharing_of(settings::strategy_for(settings.parallel.strategy, machine.devices)),
      .ranks = machine.devices,
      .batch_rows = train.batch_size.value.value_or(1),
      .row_tokens = settings.model.max_seq_len,
      .accumulates = train.grad_accum.value.value_or(2) > 1,
      .recompute = train.gradient_checkpointing == "auto"
                       ? architecture::Recompute::Blocks
                       : architecture::recompute_of(train.gradient_checkpointing),
      .keep_whole_below = settings.parallel.keep_whole_below,
      .bucket_bytes = settings.parallel.bucket_mb << 20,
      .moment_bytes_of_256 = moment_bytes_of_256(train.moment_type()),
      .has_masters = train.optimizer.master_weights == "fp32",
      .pages_moments = train.optim.starts_with("paged_"),
      .offloads_inputs = train.activation_offload == "cpu",
      .hardware = machine.hardware};
  const config::NameList& targets = settings.tuning.lora.target_modules;
  if (targets.names != std::vector<std::string>{"auto"} &&
      targets.names != std::vector<std::string>{"all-linear"})
    request.lora_targets = targets.names;
  return request;
}

void settle_recompute(const architecture::DecoderSpec& model,
                      const settings::TrainSettings& settings, int64_t device_bytes,
                      sizing::EstimateRequest& request) {
  if (settings.train.gradient_checkpointing == "auto")
    request.recompute = sizing::choose_recompute(model, request, device_bytes);
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
