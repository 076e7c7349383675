// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/fallbacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "convoy/core/base/suggest.h"

namespace convoy::settings {
namespace {

// The integrations of transformers' report_to.
constexpr std::array<std::string_view, 12> kElsewhere = {
    "azure_ml", "clearml", "codecarbon", "comet_ml", "dagshub", "dvclive",
    "flyte",    "mlflow",  "neptune",    "swanlab",  "trackio", "wandb"};

bool is_elsewhere(const std::string& backend) {
  return std::find(kElsewhere.begin(), kElsewhere.end(), backend) != kElsewhere.end();
}

}  // namespace

void check_reports(const LoggingSettings& logging, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  if (!resolved.value("logging.backend").readable) return;
  for (const std::string& name : logging.backend.names)
    if (name != "tensorboard" && name != "none" && name != "all" && !is_elsewhere(name))
      errors.add(
          ConfigError(fmt::format("logging.backend: wanted tensorboard or none, found `{}`{}", name,
                                  did_you_mean(name, {"tensorboard", "none"})),
                      resolved.location("logging.backend", "none turns these reports off")));
}

void fall_back_to_tensorboard(LoggingSettings& logging, config::Resolved& resolved) {
  std::vector<std::string>& names = logging.backend.names;
  std::vector<std::string> absent;
  std::copy_if(names.begin(), names.end(), std::back_inserter(absent), is_elsewhere);
  const bool wants_all = std::find(names.begin(), names.end(), "all") != names.end();
  if (absent.empty() && !wants_all) return;
  names = {"tensorboard"};
  if (!absent.empty())
    resolved.warn(fmt::format(
        "{}: logging.backend: there is no {} here; the run writes TensorBoard's files, and `convoy "
        "runs serve` shows its curves",
        resolved.value("logging.backend").origin, fmt::join(absent, ", ")));
  resolved.decided("logging.backend", "what there is");
}

void fall_back_to_the_loss(TrainingSettings& train, config::Resolved& resolved) {
  if (!is_text_metric(train.best_metric_name()) ||
      train.generating_evaluation.predict_with_generate)
    return;
  resolved.warn(fmt::format(
      "{}: train.metric_for_best_model is {}, which evaluations measure only with "
      "train.predict_with_generate=true: eval_loss decides which checkpoint is best",
      resolved.value("train.metric_for_best_model").origin, train.metric_for_best_model));
  train.metric_for_best_model = "eval_loss";
  train.greater_is_better = "auto";
  for (const char* const path : {"train.metric_for_best_model", "train.greater_is_better"})
    resolved.decided(path, "evaluations generate no answers");
}

void warn_of_idle_early_stop(const TrainSettings& settings, config::Resolved& resolved) {
  const TrainingSettings& train = settings.train;
  if (train.early_stopping_patience == 0 || train.eval_strategy != "no" ||
      settings.task_facts().data == TaskData::Windows)
    return;
  resolved.warn(fmt::format(
      "{}: train.early_stopping_patience is {}, and there are no evaluations "
      "(train.eval_strategy no): nothing stops the training early",
      resolved.value("train.early_stopping_patience").origin, train.early_stopping_patience));
}

}  // namespace convoy::settings
