// SPDX-License-Identifier: Apache-2.0
//
// Checks the settings of a task that learns from a teacher: settings that it would ignore are
// refused.
#pragma once

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Call it only when all settings could be read.
void check_distill(const TrainSettings& settings, const config::Resolved& resolved,
                   config::ErrorList& errors);

}  // namespace convoy::settings
