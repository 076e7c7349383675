// SPDX-License-Identifier: Apache-2.0
//
// Random names of runs and of their temporary folders.
#pragma once

#include <string>

namespace convoy::processes {

std::string new_run_id();  // 16 hexadecimal digits

}  // namespace convoy::processes
