// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval --samples`: measures saved predictions. No model, no ranks.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

// `arguments`: those of `convoy eval`, without rank and device flags. Returns the exit code. Throws
// DataError, ConfigError.
int evaluate_saved_samples(Context& context, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
