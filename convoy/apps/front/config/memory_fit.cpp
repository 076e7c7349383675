// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/config/memory_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "convoy/apps/front/config/preset_facts.h"
#include "convoy/apps/front/config/starter_config.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/sizing/compute_dtype.h"
#include "convoy/model/sizing/training_request.h"

namespace convoy::apps {
namespace {

int64_t most_rows_of(const architecture::DecoderSpec& model, int64_t device_bytes,
                     sizing::EstimateRequest request) {
  const auto fits = [&](int64_t rows) {
    request.batch_rows = rows;
    return sizing::estimate_memory(model, request).total_bytes() <= device_bytes;
  };
  if (!fits(1)) return 0;
  constexpr int64_t kMostRows = int64_t{1} << 20;
  int64_t most = 1;
  while (most < kMostRows && fits(2 * most)) most *= 2;
  for (int64_t step = most / 2; step > 0; step /= 2)
    if (fits(most + step)) most += step;
  return most;
}

}  // namespace

std::string MemoryFit::text() const {
  const bool draws = request.texts_of_row > 0;
  const std::string rows =
      draws
          ? fmt::format("{} of {} texts of {} tokens", counted(request.batch_rows, "problem"),
                        request.texts_of_row, request.row_tokens)
          : fmt::format("{} of {} tokens", counted(request.batch_rows, "row"), request.row_tokens);
  const std::string halves =
      draws ? fmt::format(": {} while texts are drawn, {} while it learns from them",
                          telemetry::bytes_text(memory.drawing_total_bytes()),
                          telemetry::bytes_text(memory.learning_total_bytes()))
            : "";
  const std::string room =
      most_rows > 0
          ? fmt::format("{} at most", draws ? counted(most_rows, "problem fits", "problems fit")
                                            : counted(most_rows, "row fits", "rows fit"))
          : fmt::format(
                "not even one {} fits: lower {}model.max_seq_len, set "
                "train.gradient_checkpointing: true, train with tuning.mode: qlora, or share the "
                "state over more devices (parallel.strategy: zero3)",
                draws ? "problem" : "row", draws ? "rollout.samples or " : "");
  const std::string& strategy = request.sharing.strategy;
  return fmt::format("memory by formula, {}: {} of {}{} with {} a micro-batch{}{}; {}",
                     machine.words, telemetry::bytes_text(memory.total_bytes()),
                     telemetry::bytes_text(machine.device_bytes),
                     strategy == "none" ? "" : " under " + strategy, rows, halves,
                     fits() ? "" : ", which does not fit", room);
}

nlohmann::ordered_json MemoryFit::to_json() const {
  return {{"machine", machine.words},
          {"device_bytes", machine.device_bytes},
          {"strategy", request.sharing.strategy},
          {"ranks", request.ranks},
          {"batch_rows", request.batch_rows},
          {"row_tokens", request.row_tokens},
          {"fits", fits()},
          {"most_rows", most_rows},
          {"memory", memory.to_json()}};
}

std::optional<architecture::DecoderSpec> sizes_of(const settings::ModelSettings& model) {
  if (model.name.empty()) return std::nullopt;  // task classify has no language model
  try {
    return families::read_decoder_spec(io::ModelFolder::open(model.name, model.revision));
  } catch (const Error&) {
    return sizing::known_model(model.name);
  }
}

std::optional<MemoryFit> memory_fit(const architecture::DecoderSpec& model,
                                    const settings::TrainSettings& settings,
                                    sizing::Machine machine, int64_t ranks) {
  if (machine.device_bytes <= 0) return std::nullopt;
  // The ranks of a host without GPUs share its memory.
  if (machine.hardware == sizing::Hardware::Cpu && ranks > 1) machine.device_bytes /= ranks;
  if (ranks > 0) machine.devices = static_cast<int>(ranks);
  const std::string dtype = sizing::choose_training_dtype(settings, machine, model).dtype;
  MemoryFit fit{.machine = machine, .request = sizing::request_in(settings, machine, dtype)};
  sizing::choose_sharing(model, settings, machine, fit.request);
  fit.most_rows = most_rows_of(model, machine.device_bytes, fit.request);
  sizing::settle_recompute(model, settings, machine.device_bytes, fit.request);
  fit.memory = sizing::estimate_memory(model, fit.request);
  return fit;
}

bool has_weights(const settings::ModelSettings& model) {
  namespace fs = std::filesystem;
  try {
    const io::ModelFolder folder = io::ModelFolder::open_without_config(model.name, model.revision);
    if (folder.is_gguf()) return true;
    const fs::directory_iterator files(folder.path());
    return std::any_of(begin(files), end(files), [](const fs::directory_entry& entry) {
      return entry.path().extension() == ".safetensors";
    });
  } catch (const Error&) {
    return false;
  }
}

sizing::Machine machine_of_config(const std::string& hardware, const config::Resolved& resolved) {
  if (!hardware.empty()) return machine_of(hardware);
  constexpr std::string_view kPreset = "preset ";
  std::set<std::string> names;
  for (const config::ResolvedValue& value : resolved.values())
    if (value.origin.starts_with(kPreset)) names.insert(value.origin.substr(kPreset.size()));
  if (names.empty()) return machine_of("auto");
  for (const PresetFacts& preset : preset_facts())
    if (preset.machine != nullptr && names.contains(preset.name)) return *preset.machine;
  return machine_of("auto");
}

void say_memory_fit(const MemoryFit& fit, const Log& log) {
  if (fit.fits())
    log.info(fit.text());
  else
    log.warning(fit.text());
}

}  // namespace convoy::apps
