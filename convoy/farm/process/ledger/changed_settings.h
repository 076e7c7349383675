// SPDX-License-Identifier: Apache-2.0
//
// The differences between two configurations of a run, named as its user names settings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convoy::process {

// "generate.temperature (--temperature): 0.5 now, 0.6 then; ..."; empty where nothing differs.
std::string changed_settings(const nlohmann::json& now, const nlohmann::json& then);

}  // namespace convoy::process
