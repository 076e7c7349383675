// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/csv_text.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::sweep {

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of("\",\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

}  // namespace convoy::sweep
