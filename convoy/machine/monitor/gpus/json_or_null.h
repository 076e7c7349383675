// SPDX-License-Identifier: Apache-2.0
//
// JSON values of facts that may be unknown: null then.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy::monitor {

inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

// `unknown`: the number that stands for an unknown one.
inline nlohmann::ordered_json number_or_null(int64_t number, int64_t unknown) {
  return number == unknown ? nlohmann::ordered_json() : nlohmann::ordered_json(number);
}

}  // namespace convoy::monitor
