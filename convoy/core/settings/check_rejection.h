// SPDX-License-Identifier: Apache-2.0
//
// Checks the settings of task rejection: settings that its rounds would ignore are refused.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Call it only when all settings could be read.
void check_rejection(const TrainSettings& settings, const config::Resolved& resolved,
                     config::ErrorList& errors);

}  // namespace convoy::settings
