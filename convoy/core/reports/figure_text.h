// SPDX-License-Identifier: Apache-2.0
//
// A figure as JSON, as trackio and wandb write it: what is no number is the text "NaN", "Infinity"
// or "-Infinity".
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy::reports {

inline std::string figure_text(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return nlohmann::json(value).dump();
}

}  // namespace convoy::reports
