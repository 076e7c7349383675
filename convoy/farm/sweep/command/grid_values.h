// SPDX-License-Identifier: Apache-2.0
//
// The values that a user lists for one name of a grid, for a command or a function. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convoy::sweep {

// Throws ConfigError for a missing value, and for a value that is listed twice. Tables and figures
// compare numbers, so two spellings of one number would give identical rows: 1, 1.0 and the text
// "1" are one value.
void check_grid_values(const std::string& name, const std::vector<nlohmann::json>& values);

// The values of a list such as "0.1, [64, 64]". Commas within brackets, braces and quotes are part
// of a value; blanks around a value are not. Throws ConfigError for a bracket, brace or quote that
// is not closed.
std::vector<std::string> listed_values(const std::string& text);

}  // namespace convoy::sweep
