// SPDX-License-Identifier: Apache-2.0
//
// Requests in other programs' files that Convoy fulfils in the nearest available way, with one
// warning. A configuration that users start unchanged still runs, and no part of their request is
// dropped silently.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Adds an error for each name of an unknown program, and for a project that they would not take.
void check_reports(const LoggingSettings& logging, const config::Resolved& resolved,
                   config::ErrorList& errors);

// Leaves reports to other programs (mlflow) out, and writes TensorBoard files where no report is
// left. "all" becomes every report that is here, with a warning: to transformers it is every
// integration that is installed.
void fall_back_to_tensorboard(LoggingSettings& logging, config::Resolved& resolved);

// Uses eval_loss to choose the best model when a metric of generated answers is configured but
// evaluations generate none.
void fall_back_to_the_loss(TrainingSettings& train, config::Resolved& resolved);

// Warns when an early stop is configured but there are no evaluations that could cause it.
// Classification always evaluates each epoch.
void warn_of_idle_early_stop(const TrainSettings& settings, config::Resolved& resolved);

}  // namespace convoy::settings
