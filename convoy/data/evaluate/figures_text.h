// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convoy::evaluate {

// The figures of metrics.json for people: one to a line.
std::string figures_text(const nlohmann::json& figures);

}  // namespace convoy::evaluate
