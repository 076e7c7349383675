// SPDX-License-Identifier: Apache-2.0
//
// The differences between two configurations of a run, with the names that a user gives to
// settings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convoy::process {

// For example "generate.temperature (--temperature): 0.5 now, 0.6 then; ..."; empty if nothing
// differs.
std::string changed_settings(const nlohmann::json& now, const nlohmann::json& then);

}  // namespace convoy::process
