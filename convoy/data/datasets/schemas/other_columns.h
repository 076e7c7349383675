// SPDX-License-Identifier: Apache-2.0
//
// Preference columns under the names of other programs: hints about what to rename in a row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace convoy::data {

// A hint such as "rename `preferred_output` to `chosen` and `non_preferred_output` to `rejected`"
// for the sides that the row has no column for. Empty when no column has a known name of a side.
std::string side_hint(const nlohmann::ordered_json& row);

// True when the row has neither `chosen` nor `rejected`, but columns with known names for both
// sides.
bool has_both_sides(const nlohmann::ordered_json& row);

// A hint such as "rename `is_good` to `label`"; empty when no column has a known name of a label.
std::string label_hint(const nlohmann::ordered_json& row);

}  // namespace convoy::data
