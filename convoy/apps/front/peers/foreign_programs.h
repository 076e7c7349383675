// SPDX-License-Identifier: Apache-2.0
//
// Hints for users who type a program of the system or of Python behind `convoy`, as guides call it:
// the Convoy command to type instead, or a sentence that the program needs no `convoy`.
#pragma once

#include <string>
#include <vector>

namespace convoy::apps {

// The hint for `convoy NAME ARGUMENTS...`. Empty when the program is not known.
std::string hint_for_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
