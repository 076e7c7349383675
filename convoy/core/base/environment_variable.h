// SPDX-License-Identifier: Apache-2.0
//
// The environment of this process. No other file reads it; a test checks that.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace convoy {

// Returns nullopt when the variable is not set. A variable that is set may be empty.
std::optional<std::string> environment_variable(const std::string& name);
std::string environment_text(const std::string& name);  // empty when it is not set
std::map<std::string, std::string> whole_environment();

}  // namespace convoy
