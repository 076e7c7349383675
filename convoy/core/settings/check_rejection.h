// SPDX-License-Identifier: Apache-2.0
//
// Checks the settings of task rejection: what its rounds would ignore is refused.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// For settings that could all be read.
void check_rejection(const TrainSettings& settings, const config::Resolved& resolved,
                     config::ErrorList& errors);

}  // namespace convoy::settings
