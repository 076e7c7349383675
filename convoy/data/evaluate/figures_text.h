// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convoy::evaluate {

// The values of metrics.json as text, one per line.
std::string figures_text(const nlohmann::json& figures);

}  // namespace convoy::evaluate
