// SPDX-License-Identifier: Apache-2.0
//
// Environment variables that hold secrets of a job. A child program gets them only when its starter
// lists them.
#pragma once

#include <string_view>

namespace convoy {

inline constexpr const char* kJobTokenVariable = "CONVOY_JOB_TOKEN";
inline constexpr const char* kJobTokenFileVariable = "CONVOY_JOB_TOKEN_FILE";

inline bool is_secret_variable(std::string_view name) {
  return name == kJobTokenVariable || name == kJobTokenFileVariable;
}

}  // namespace convoy
