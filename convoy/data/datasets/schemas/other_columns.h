// SPDX-License-Identifier: Apache-2.0
//
// Columns of preferences by the names that other programs give them: what to rename in a row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace convoy::data {

// "rename `preferred_output` to `chosen` and `non_preferred_output` to `rejected`", for sides that
// an object has no column of; empty where no known name stands for one.
std::string side_hint(const nlohmann::ordered_json& row);

// The row has no `chosen` and no `rejected`, and columns by known names of both.
bool has_both_sides(const nlohmann::ordered_json& row);

// "rename `is_good` to `label`"; empty where no known name stands for it.
std::string label_hint(const nlohmann::ordered_json& row);

}  // namespace convoy::data
