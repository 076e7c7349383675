// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/fallbacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "convoy/core/base/suggest.h"
#include "convoy/core/settings/report_projects.h"

namespace convoy::settings {
namespace {

// The reports that a run can write, all of them for "all".
constexpr std::array<std::string_view, 3> kHere = {"tensorboard", "trackio", "wandb"};

// The other integrations of transformers' report_to.
constexpr std::array<std::string_view, 10> kElsewhere = {
    "azure_ml", "clearml", "codecarbon", "comet_ml", "dagshub",
    "dvclive",  "flyte",   "mlflow",     "neptune",  "swanlab"};

bool is_here(const std::string& backend) {
  return std::find(kHere.begin(), kHere.end(), backend) != kHere.end();
}

bool is_elsewhere(const std::string& backend) {
  return std::find(kElsewhere.begin(), kElsewhere.end(), backend) != kElsewhere.end();
}

}  // namespace

void check_reports(const LoggingSettings& logging, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  if (!resolved.value("logging.backend").readable) return;
  for (const std::string& name : logging.backend.names)
    if (!is_here(name) && name != "none" && name != "all" && !is_elsewhere(name))
      errors.add(ConfigError(
          fmt::format("logging.backend: wanted tensorboard, trackio, wandb, all or "
                      "none, found `{}`{}",
                      name, did_you_mean(name, {"tensorboard", "trackio", "wandb", "none"})),
          resolved.location("logging.backend", "none turns these reports off")));
  check_report_projects(logging, resolved, errors);
}

void fall_back_to_tensorboard(LoggingSettings& logging, config::Resolved& resolved) {
  std::vector<std::string>& names = logging.backend.names;
  if (std::find(names.begin(), names.end(), "all") != names.end()) {
    resolved.warn(fmt::format(
        "{}: logging.backend is all: the run writes the files of {}, whether these programs are "
        "installed or not; name those that you want",
        resolved.value("logging.backend").origin, fmt::join(kHere, ", ")));
    names.assign(kHere.begin(), kHere.end());
    resolved.decided("logging.backend", "what there is");
    return;
  }
  std::vector<std::string> absent;
  std::copy_if(names.begin(), names.end(), std::back_inserter(absent), is_elsewhere);
  if (absent.empty()) return;
  std::erase_if(names, is_elsewhere);
  if (names.empty()) names = {"tensorboard"};
  resolved.warn(fmt::format(
      "{}: logging.backend: there is no {} here; the run writes the files of {}, and `convoy runs "
      "serve` shows its curves",
      resolved.value("logging.backend").origin, fmt::join(absent, ", "), fmt::join(names, ", ")));
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
