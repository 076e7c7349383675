// SPDX-License-Identifier: Apache-2.0
//
// `convoy process verify`: the answer checker alone, over the rows of a file.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

// For the actions of the command `process`.
Action process_verify_action();

// `arguments`: what follows the word `verify`. Returns the exit code. Throws ConfigError, DataError, IoError.
int run_process_verify(Context& context, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
