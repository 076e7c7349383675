// SPDX-License-Identifier: Apache-2.0
#include "convoy/settings/resolve_train.h"

#include <fmt/format.h>

#include <cmath>

#include "convoy/base/error.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::settings {
namespace {

void check_combinations(const TrainSettings& settings, const config::Resolved& resolved) {
  const SplitSettings& split = settings.data.split;
  const double sum = split.train_ratio + split.val_ratio + split.test_ratio;
  if (std::abs(sum - 1.0) > 1e-6) {
    const std::string key = resolved.value("data.split.train_ratio").origin == "default"
                                ? "data.split.val_ratio"
                                : "data.split.train_ratio";
    throw ConfigError(fmt::format("data.split: the shares must sum to 1, found {:.7g}", sum),
                      resolved.place(key, "train_ratio + val_ratio + test_ratio"));
  }
  const auto kwargs = nlohmann::ordered_json::parse(settings.data.template_kwargs.json);
  if (const auto problem = template_kwargs_problem(kwargs))
    throw ConfigError("data.template_kwargs: " + *problem, resolved.place("data.template_kwargs"));
  if (settings.train.metric_for_best_model == "eval_loss" && settings.train.greater_is_better)
    throw ConfigError("train.greater_is_better is true, but a smaller eval_loss is better",
                      resolved.place("train.greater_is_better", "remove it"));
}

}  // namespace

config::Resolved resolve_train(TrainSettings& settings, config::Sources sources) {
  sources.rules = train_key_rules();
  sources.environment_names = {{"DEEPSPEED_CONFIG", "train.deepspeed"}, {"NUM_GPUS", "num_gpus"}};
  config::Resolved resolved = config::resolve(settings, sources);
  check_combinations(settings, resolved);
  return resolved;
}

void require_train_inputs(const TrainSettings& settings) {
  if (settings.model.name.empty())
    throw ConfigError("model.name is not set: a model folder or a hub id is wanted",
                      {.key = "model.name", .hint = "model.name=PATH"});
  if (settings.data.train_path.empty())
    throw ConfigError("data.train_path is not set: a file of training rows is wanted",
                      {.key = "data.train_path", .hint = "data.train_path=rows.jsonl"});
}

}  // namespace convoy::settings
