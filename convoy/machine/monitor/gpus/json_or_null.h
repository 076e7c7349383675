// SPDX-License-Identifier: Apache-2.0
//
// JSON values of facts; an unknown fact is null.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy::monitor {

inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

// `unknown`: the value that stands for an unknown number.
inline nlohmann::ordered_json number_or_null(int64_t number, int64_t unknown) {
  return number == unknown ? nlohmann::ordered_json() : nlohmann::ordered_json(number);
}

}  // namespace convoy::monitor
