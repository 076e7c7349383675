// SPDX-License-Identifier: Apache-2.0
#include "convoy/settings/resolve_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string_view>

#include "convoy/base/error.h"
#include "convoy/config/describe.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::settings {
namespace {

bool all_readable(const config::Resolved& resolved, std::initializer_list<const char*> paths) {
  return std::all_of(paths.begin(), paths.end(),
                     [&](const char* path) { return resolved.value(path).readable; });
}

void check_network(const ClassifySettings& classify, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  if (classify.widths.empty() || classify.widths.size() != classify.kernel_sizes.size())
    errors.add(
        ConfigError(fmt::format("classify.kernel_sizes: wanted one for each of {} widths, found {}",
                                classify.widths.size(), classify.kernel_sizes.size()),
                    resolved.place("classify.kernel_sizes")));
  for (const int64_t size : classify.kernel_sizes)
    if (size % 2 == 0)
      errors.add(ConfigError(fmt::format("classify.kernel_sizes: wanted odd sizes, found {}", size),
                             resolved.place("classify.kernel_sizes")));
  if (classify.freeze_encoder == "true" && classify.encoder_path.empty())
    errors.add(ConfigError(
        "classify.freeze_encoder is true, but there is no encoder to start from: it would never "
        "learn",
        resolved.place("classify.freeze_encoder", "give classify.encoder_path")));
}

// Values by path.
std::map<std::string, std::string> section_values(const TrainSettings& settings,
                                                  std::string_view section) {
  TrainSettings listed = settings;
  const config::Section list = config::list_fields(listed);
  std::map<std::string, std::string> values;
  config::for_each_field(list, "", [&](const std::string& path, const config::Field& field) {
    if (path.starts_with(section)) values[path] = config::value_yaml(field);
  });
  return values;
}

// A setting of the other task would do nothing. Told by value: a run's own configuration spells out
// the defaults, too.
void check_classify(const TrainSettings& settings, const config::Resolved& resolved,
                    config::ErrorList& errors) {
  if (!resolved.whole()) return;
  if (settings.task == "classify") return check_network(settings.classify, resolved, errors);
  const auto defaults = section_values({}, "classify.");
  for (const auto& [path, value] : section_values(settings, "classify."))
    if (value != defaults.at(path))
      errors.add(
          ConfigError(fmt::format("{} is of task classify, found task {}", path, settings.task),
                      resolved.place(path, "add task: classify, or remove it")));
}

void check_combinations(const TrainSettings& settings, const config::Resolved& resolved,
                        config::ErrorList& errors) {
  const SplitSettings& split = settings.data.split;
  const double sum = split.train_ratio + split.val_ratio + split.test_ratio;
  if (all_readable(resolved,
                   {"data.split.train_ratio", "data.split.val_ratio", "data.split.test_ratio"}) &&
      std::abs(sum - 1.0) > 1e-6) {
    const std::string key = resolved.value("data.split.train_ratio").origin == "default"
                                ? "data.split.val_ratio"
                                : "data.split.train_ratio";
    errors.add(ConfigError(fmt::format("data.split: the shares must sum to 1, found {:.7g}", sum),
                           resolved.place(key, "train_ratio + val_ratio + test_ratio")));
  }
  if (all_readable(resolved, {"data.template_kwargs"}))
    if (const auto problem = template_kwargs_problem(
            nlohmann::ordered_json::parse(settings.data.template_kwargs.json)))
      errors.add(
          ConfigError("data.template_kwargs: " + *problem, resolved.place("data.template_kwargs")));
  if (all_readable(resolved, {"train.lr_scaling", "train.lr_reference_batch"}) &&
      settings.train.lr_scaling != "none" && settings.train.lr_reference_batch == 0)
    errors.add(ConfigError(
        fmt::format("train.lr_scaling is {}, but train.lr_reference_batch is not set: it wants the "
                    "global batch that train.learning_rate was chosen for",
                    settings.train.lr_scaling),
        resolved.place("train.lr_scaling", "train.lr_reference_batch=ROWS")));
  if (all_readable(resolved, {"train.metric_for_best_model", "train.greater_is_better"}) &&
      settings.train.metric_for_best_model == "eval_loss" && settings.train.greater_is_better)
    errors.add(ConfigError("train.greater_is_better is true, but a smaller eval_loss is better",
                           resolved.place("train.greater_is_better", "remove it")));
  if (all_readable(resolved, {"task", "train.metric_for_best_model"}) &&
      settings.train.metric_for_best_model == "eval_accuracy" && settings.task != "classify")
    errors.add(ConfigError(
        fmt::format("train.metric_for_best_model eval_accuracy is of task classify, found task {}",
                    settings.task),
        resolved.place("train.metric_for_best_model", "eval_loss")));
  check_classify(settings, resolved, errors);
}

// No file is taken unasked, but those that SFT-Play writes are looked for and named.
ErrorPlace where_rows_may_be() {
  constexpr std::array<std::array<const char*, 2>, 3> kPlaces = {
      {{"train_path", "data/processed/train.jsonl"},
       {"val_path", "data/processed/val.jsonl"},
       {"test_path", "data/processed/test.jsonl"}}};
  std::string found;
  std::string missing;
  for (const auto& [key, path] : kPlaces) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored))
      found += fmt::format("{}data.{}={}", found.empty() ? "" : " ", key, path);
    else
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", path);
  }
  ErrorPlace place{.key = "data.train_path"};
  place.hint =
      found.find("train_path") != std::string::npos
          ? "the default place of SFT-Play holds rows: " + found
          : "data.train_path=rows.jsonl; the default places of SFT-Play hold none: " + missing;
  return place;
}

void check_inputs(const TrainSettings& settings, const config::Resolved& resolved,
                  config::ErrorList& errors) {
  if (settings.task == "classify") {
    if (settings.classify.data_dir.empty())
      errors.add(ConfigError(
          "classify.data_dir is not set: a folder of windows is wanted",
          {.key = "classify.data_dir", .hint = "classify.data_dir=PATH, or --data-dir PATH"}));
    return;
  }
  if (settings.model.name.empty() && all_readable(resolved, {"model.name"}))
    errors.add(ConfigError("model.name is not set: a model folder or a hub id is wanted",
                           {.key = "model.name", .hint = "model.name=PATH"}));
  if (settings.data.train_path.empty() && all_readable(resolved, {"data.train_path"}))
    errors.add(ConfigError("data.train_path is not set: a file of training rows is wanted",
                           where_rows_may_be()));
}

}  // namespace

config::Resolved resolve_train(TrainSettings& settings, config::Sources sources, Wanted wanted) {
  sources.rules = train_key_rules();
  sources.environment_names = {{"DEEPSPEED_CONFIG", "train.deepspeed"}, {"NUM_GPUS", "num_gpus"}};
  return config::resolve(settings, sources,
                         [&](const config::Resolved& resolved, config::ErrorList& errors) {
                           check_combinations(settings, resolved, errors);
                           if (wanted == Wanted::TrainInputs && resolved.whole())
                             check_inputs(settings, resolved, errors);
                         });
}

}  // namespace convoy::settings
