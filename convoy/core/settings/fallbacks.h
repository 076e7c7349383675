// SPDX-License-Identifier: Apache-2.0
//
// What other programs' files ask for and Convoy does in the nearest way, with one warning: a run
// that its users start as it is goes on, and no part of what they asked for is left out in silence.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Adds names that no program has to the errors.
void check_reports(const LoggingSettings& logging, const config::Resolved& resolved,
                   config::ErrorList& errors);

// Reports to other programs (wandb, mlflow) become TensorBoard's files.
void fall_back_to_tensorboard(LoggingSettings& logging, config::Resolved& resolved);

// A figure of answers decides nothing where evaluations generate none: then eval_loss does.
void fall_back_to_the_loss(TrainingSettings& train, config::Resolved& resolved);

}  // namespace convoy::settings
