// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/csv_cell.h"

namespace convoy {

void add_csv_cell(std::string_view cell, char separator, std::string& line) {
  const bool is_plain = cell.find_first_of("\"\r\n") == std::string_view::npos &&
                        cell.find(separator) == std::string_view::npos;
  if (is_plain) {
    line += cell;
  } else {
    add_quoted_csv_cell(cell, line);
  }
}

void add_quoted_csv_cell(std::string_view cell, std::string& line) {
  line += '"';
  for (const char letter : cell) {
    if (letter == '"') line += '"';
    line += letter;
  }
  line += '"';
}

std::string csv_cell(std::string_view cell) {
  std::string text;
  add_csv_cell(cell, ',', text);
  return text;
}

}  // namespace convoy
