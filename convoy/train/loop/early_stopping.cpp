// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/early_stopping.h"

#include <limits>

#include "convoy/core/base/error.h"

namespace convoy::train {

double deciding_figure(const Evaluation& evaluation, const settings::TrainingSettings& settings) {
  const std::string name = settings.metric_for_best_model.substr(std::string_view("eval_").size());
  if (name == "loss") return evaluation.loss;
  const auto found = evaluation.others.find(name);
  if (found == evaluation.others.end())
    throw ConfigError(
        fmt::format("train.metric_for_best_model is {}, which this task does not measure",
                    settings.metric_for_best_model),
        {.key = "train.metric_for_best_model",
         .hint = "train.metric_for_best_model=eval_loss is always measured"});
  return found->second;
}

bool record_evaluation(checkpoint::Progress& progress, double figure,
                       const settings::TrainingSettings& settings) {
  // The sign turns figures so that smaller ones are better.
  const double sign = settings.larger_is_better() ? -1 : 1;
  const double best =
      progress.best_metric ? sign * *progress.best_metric : std::numeric_limits<double>::infinity();
  const bool gains = best - sign * figure > settings.early_stopping_threshold;
  progress.evaluations_without_improvement =
      gains ? 0 : progress.evaluations_without_improvement + 1;
  if (!(sign * figure < best)) return false;
  progress.best_metric = figure;
  progress.best_step = progress.step;
  return true;
}

bool out_of_patience(const checkpoint::Progress& progress,
                     const settings::TrainingSettings& settings) {
  return settings.early_stopping_patience > 0 &&
         progress.evaluations_without_improvement >= settings.early_stopping_patience;
}

}  // namespace convoy::train
