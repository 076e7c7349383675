// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/foreign_checkpoint.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/json_reader.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool any_entry(const fs::path& folder, bool (*fits)(const fs::directory_entry&)) {
  std::error_code ignored;
  const fs::directory_iterator entries(folder, ignored);
  return std::any_of(begin(entries), end(entries), fits);
}

// mp_rank_00_model_states.pt, bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt, ...; in a universal
// checkpoint zero/NAME/fp32.pt.
bool holds_deepspeed_states(const fs::path& folder) {
  return any_entry(folder,
                   [](const fs::directory_entry& entry) {
                     const std::string name = entry.path().filename().string();
                     return name.find("mp_rank_") != std::string::npos &&
                            name.ends_with("_states.pt");
                   }) ||
         any_entry(folder / "zero", [](const fs::directory_entry& entry) {
           return is_file(entry.path() / "fp32.pt");
         });
}

// The folder with the states: `folder`, or a folder that it contains or names in its `latest` file.
std::optional<fs::path> deepspeed_states(const fs::path& folder) {
  if (holds_deepspeed_states(folder)) return folder;
  for (const char* const name : {"latest", "latest_universal"}) {
    std::string tag;
    if (std::getline(std::ifstream(folder / name), tag) && !tag.empty() &&
        holds_deepspeed_states(folder / tag))
      return folder / tag;
  }
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("global_step") &&
        holds_deepspeed_states(entry.path()))
      return entry.path();
  return std::nullopt;
}

}  // namespace

std::optional<std::string> trainer_checkpoint_notice(const fs::path& folder) {
  static constexpr std::array<const char*, 3> kStates = {"optimizer.pt", "scheduler.pt",
                                                         "training_args.bin"};
  const bool has_state = std::any_of(kStates.begin(), kStates.end(), [&](const char* const name) {
    return is_file(folder / name);
  });
  if (!has_state || !is_file(folder / "trainer_state.json")) return std::nullopt;
  return fmt::format(
      "{} is a checkpoint of transformers' Trainer: a new run starts from its weights; its "
      "optimizer, schedule and data position are not used",
      folder.string());
}

void refuse_deepspeed_checkpoint(const fs::path& folder) {
  const std::optional<fs::path> states = deepspeed_states(folder);
  if (!states) return;
  throw DataError(
      fmt::format("this is a checkpoint of DeepSpeed: its states are pickles ({}), which are never "
                  "read",
                  states->string()),
      {.file = folder.string(),
       .hint =
           "convert it with DeepSpeed's zero_to_fp32.py in that folder: `python zero_to_fp32.py "
           "--safe_serialization FOLDER OUT`; put config.json and the tokenizer's files into "
           "OUT, and start from model.name=OUT; the optimizer's state is not converted"});
}

void refuse_trainer_output(const fs::path& folder) {
  constexpr std::string_view kPrefix = "checkpoint-";
  int64_t newest_step = -1;
  fs::path newest;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto step = text_as<int64_t>(std::string_view(name).substr(kPrefix.size()));
    const bool is_start =
        is_file(entry.path() / "config.json") || is_file(entry.path() / "adapter_config.json");
    if (!step || !is_start || *step <= newest_step) continue;
    newest_step = *step;
    newest = entry.path();
  }
  if (newest_step < 0) return;
  throw DataError(
      "this is the output folder of transformers' Trainer: it has no model of its own, but "
      "checkpoints",
      {.file = folder.string(), .hint = fmt::format("give the newest, {}", newest.string())});
}

void refuse_run_folder(const fs::path& folder) {
  if (!is_file(folder / "run.json")) return;
  for (const auto& [result, config] :
       {std::pair("model", "config.json"), std::pair("adapter", "adapter_config.json")})
    if (is_file(folder / result / config))
      throw DataError("this is the folder of a run, which has its result in a folder of its own",
                      {.file = folder.string(),
                       .hint = fmt::format("give its {}, {}", result, (folder / result).string())});
}

std::optional<std::string> base_of_adapter_folder(const fs::path& folder) {
  const fs::path config = folder / "adapter_config.json";
  if (is_file(folder / "config.json") || !is_file(config)) return std::nullopt;
  return JsonReader(read_json_file(config), config.string())
      .require_string("base_model_name_or_path");
}

}  // namespace convoy::io
