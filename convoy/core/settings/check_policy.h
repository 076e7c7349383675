// SPDX-License-Identifier: Apache-2.0
//
// Checks the settings of tasks that learn from texts of the model: settings that they would ignore
// are refused.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Call these only when all settings could be read.
// A task that learns from rewards.
void check_policy(const TrainSettings& settings, const config::Resolved& resolved,
                  config::ErrorList& errors);
// Any task of TaskData::Rollouts; check_policy() includes it.
void check_rollouts(const TrainSettings& settings, const config::Resolved& resolved,
                    config::ErrorList& errors);

}  // namespace convoy::settings
