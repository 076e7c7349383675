// SPDX-License-Identifier: Apache-2.0
//
// Judges the evaluations of a run so far: the best one, and whether the run should end. The rule is
// transformers' own: the best evaluation is the one with the best figure, however small the gain;
// the threshold counts for the patience alone (EarlyStoppingCallback).
#pragma once

#include "convoy/core/settings/train_settings.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

// The figure that train.metric_for_best_model names. Throws ConfigError where the objective has no
// such figure.
double deciding_figure(const Evaluation& evaluation, const settings::TrainingSettings& settings);

// Takes the deciding figure of the evaluation after `progress.step` into account. True when it is
// the best so far.
bool record_evaluation(checkpoint::Progress& progress, double figure,
                       const settings::TrainingSettings& settings);

bool out_of_patience(const checkpoint::Progress& progress,
                     const settings::TrainingSettings& settings);

}  // namespace convoy::train
