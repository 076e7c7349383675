// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/early_stopping.h"

#include <limits>

namespace convoy::train {

bool record_evaluation(checkpoint::Progress& progress, double loss,
                       const settings::TrainingSettings& settings) {
  const double best = progress.best_metric.value_or(std::numeric_limits<double>::infinity());
  const bool gains = best - loss > settings.early_stopping_threshold;
  progress.evaluations_without_improvement =
      gains ? 0 : progress.evaluations_without_improvement + 1;
  if (!(loss < best)) return false;
  progress.best_metric = loss;
  progress.best_step = progress.step;
  return true;
}

bool out_of_patience(const checkpoint::Progress& progress,
                     const settings::TrainingSettings& settings) {
  return settings.early_stopping_patience > 0 &&
         progress.evaluations_without_improvement >= settings.early_stopping_patience;
}

}  // namespace convoy::train
