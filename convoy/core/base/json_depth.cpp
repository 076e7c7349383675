// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/json_depth.h"

namespace convoy {

bool nested_deeper(std::string_view json, size_t most_levels) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char letter = json[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > most_levels) return true;
    } else if (letter == '}' || letter == ']') {
      if (depth > 0) --depth;
    }
  }
  return false;
}

size_t closing_brace(std::string_view json, size_t at) {
  int depth = 0;
  bool in_string = false;
  for (; at < json.size(); ++at) {
    const char letter = json[at];
    if (in_string && letter == '\\') {
      ++at;
    } else if (letter == '"') {
      in_string = !in_string;
    } else if (!in_string && letter == '{') {
      ++depth;
    } else if (!in_string && letter == '}' && --depth == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace convoy
