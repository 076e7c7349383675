// SPDX-License-Identifier: Apache-2.0
//
// Columns of text for people. A column is as wide as its longest cell, columns are two spaces
// apart, and no line ends in spaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

struct TableLook {
  // Cells of the columns from `first_number` to `end_numbers` - 1 are aligned to the right, as
  // numbers.
  size_t first_number = SIZE_MAX;
  size_t end_numbers = SIZE_MAX;
  std::string empty = "-";  // text of an empty cell, except in the last column
};

// The first row is the heading. Every row has as many cells as the heading. Ends with a line break.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const TableLook& look = {});

}  // namespace convoy
