// SPDX-License-Identifier: Apache-2.0
//
// Pieces that the batch scripts for bash share.
#pragma once

#include <string>

#include "convoy/launch/submit/submit_settings.h"

namespace convoy::launch {

// Lines that export the variables of --env that have a value.
std::string shell_exports(const SubmitSettings& settings);

// Shell lines that wait for the background process whose number is in the shell variable `process`,
// and set `code` to its exit code. Traps run meanwhile, half a second late at most.
std::string wait_for(const std::string& process);

}  // namespace convoy::launch
