// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/check_rejection.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "convoy/core/config/describe.h"

namespace convoy::settings {
namespace {

struct UnreadKeys {
  std::string_view reason;
  std::vector<std::string_view> begins;  // the beginnings of the keys
};

// Settings without a meaning in rounds, such as evaluations and splits of rows: a round learns all
// of its rows and is measured by its answers.
const std::array<UnreadKeys, 4>& unread_keys() {
  static const std::array<UnreadKeys, 4> keys = {
      {{"each round is evaluated by its answers to data.val_path",
        {"train.eval_", "train.final_eval", "train.metric_for_best_model",
         "train.greater_is_better", "train.early_stopping_", "train.predict_with_generate",
         "train.generation_", "data.test_path", "data.split."}},
       {"the rows are made in the rounds, from problems with answers", {"data.schema"}},
       {"the next round needs the result of each", {"train.export_model"}},
       {"generation does not read it",
        {"tuning.quantization.block_size", "tuning.quantization.skip_modules"}}}};
  return keys;
}

// Returns null when the rounds read the key.
const UnreadKeys* why_unread(std::string_view path) {
  for (const UnreadKeys& keys : unread_keys())
    for (const std::string_view begin : keys.begins)
      if (path.starts_with(begin)) return &keys;
  return nullptr;
}

// A setting that turns other evaluations off is allowed: rounds never do those.
bool says_what_rounds_do(const TrainSettings& settings, std::string_view path) {
  return (path == "train.eval_strategy" && settings.train.eval_strategy == "no") ||
         (path == "train.final_eval" && !settings.train.final_eval) ||
         (path == "data.split.val_ratio" && settings.data.split.val_ratio.value == 0.0);
}

}  // namespace

void check_rejection(const TrainSettings& settings, const config::Resolved& resolved,
                     config::ErrorList& errors) {
  const auto refuse = [&](const std::string& key, std::string_view reason,
                          const std::string& hint) {
    errors.add(ConfigError(fmt::format("{}: task rejection: {}", key, reason),
                           resolved.location(key, hint)));
  };
  TrainSettings given = settings;
  TrainSettings defaults;
  for (const auto& [path, value] :
       config::changed_values(config::list_fields(given), config::list_fields(defaults)))
    if (const UnreadKeys* const unread = why_unread(path);
        unread && !says_what_rounds_do(settings, path))
      refuse(path, unread->reason, "remove it");
  if (settings.rejection.max_tokens >= settings.model.max_seq_len)
    refuse("rejection.max_tokens",
           fmt::format("{} tokens of a solution leave no room for its problem in "
                       "model.max_seq_len {}",
                       settings.rejection.max_tokens, settings.model.max_seq_len),
           "raise model.max_seq_len, or lower it");
  if (settings.rejection.temperature == 0 && settings.rejection.samples > 1)
    refuse(
        "rejection.samples",
        fmt::format("{} samples at temperature 0 are one and the same", settings.rejection.samples),
        "raise rejection.temperature");
  if (settings.data.bad_rows == "replace")
    refuse("data.bad_rows", "problems are read as they are, found replace", "error or skip");
  const std::string& resume = settings.train.resume_from_checkpoint;
  if (resume != "auto" && resume != "never")
    refuse("train.resume_from_checkpoint",
           fmt::format("a run goes on by its folder, not from one checkpoint, found {}", resume),
           "--run-dir FOLDER --resume auto");
}

}  // namespace convoy::settings
