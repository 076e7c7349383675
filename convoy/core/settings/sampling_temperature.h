// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convoy/core/settings/command_flags.h"

namespace convoy::settings {

// The temperature that the flags ask for; 0 = greedy. Throws ConfigError for a contradiction.
double temperature_of(const SamplingFlags& sampling);

}  // namespace convoy::settings
