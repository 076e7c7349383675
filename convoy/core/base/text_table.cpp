// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/error.h"

namespace convoy {

std::string text_table(const std::vector<std::vector<std::string>>& rows, const TableLook& look) {
  std::vector<size_t> widths(rows.at(0).size(), look.empty.size());
  for (const auto& row : rows) {
    CONVOY_INVARIANT(row.size() == widths.size(), "{} cells under {} headings", row.size(),
                     widths.size());
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const bool last = column + 1 == row.size();
      const std::string& cell = row[column].empty() && !last ? look.empty : row[column];
      const bool is_number = column >= look.first_number && column < look.end_numbers;
      line += is_number ? fmt::format("{:>{}}", cell, widths[column])
                        : fmt::format("{:<{}}", cell, widths[column]);
      if (!last) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace convoy
