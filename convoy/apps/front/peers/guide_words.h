// SPDX-License-Identifier: Apache-2.0
//
// Hints for users who type a script or a make target of a guide: the Convoy command to type
// instead.
#pragma once

#include <string>
#include <vector>

namespace convoy::apps {

// The hint for a script (by its file name) or a make target, typed with `arguments`. Empty when no
// script or target of that name is known.
std::string hint_for_script(const std::string& name, const std::vector<std::string>& arguments);

// The hint for `make ARGUMENTS...`. Never empty.
std::string hint_for_make(const std::vector<std::string>& arguments);

}  // namespace convoy::apps
