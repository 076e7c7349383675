// SPDX-License-Identifier: Apache-2.0
//
// Scripts and make targets of the guides: what to type here in their place.
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
