// SPDX-License-Identifier: Apache-2.0
//
// Programs of the system and of Python that guides call, typed behind `convoy`: the command that
// does it here, or the word that it needs no convoy.
#pragma once

#include <string>
#include <vector>

namespace convoy::apps {

// The hint for `convoy NAME ARGUMENTS...`. Empty when the program is not known.
std::string hint_for_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
