// SPDX-License-Identifier: Apache-2.0
//
// Reads members of JSON objects that other programs wrote.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace convoy {

// Returns the member when it exists and has the type of `otherwise` (double, int64_t, bool or
// std::string), else `otherwise`. nlohmann's value() throws for another type. `object` must be an
// object.
template <class Json, class Value>
Value member_or(const Json& object, const char* key, Value otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  bool fits = false;
  if constexpr (std::is_same_v<Value, bool>)
    fits = found->is_boolean();
  else if constexpr (std::is_same_v<Value, int64_t>)
    fits = found->is_number_integer();
  else if constexpr (std::is_same_v<Value, double>)
    fits = found->is_number();
  else
    fits = found->is_string();
  return fits ? found->template get<Value>() : otherwise;
}

}  // namespace convoy
