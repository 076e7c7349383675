// SPDX-License-Identifier: Apache-2.0
//
// Checks the settings of a task that learns from preferences: settings that its loss does not read
// are refused.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Call it only when all settings could be read.
void check_preference(const TrainSettings& settings, const config::Resolved& resolved,
                      config::ErrorList& errors);

// Warns of settings that a source gives with their default values and that neither the task nor its
// loss reads. Other values are refused. Says nothing where sources give most settings, as a run's
// own configuration does. Call it after the checks.
void warn_of_unread_preferences(const TrainSettings& settings, config::Resolved& resolved);

}  // namespace convoy::settings
