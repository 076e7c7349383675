// SPDX-License-Identifier: Apache-2.0
//
// Prints a table that fits the width of a terminal. Long cells are folded; when that is not enough,
// the columns are split into several tables below each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace convoy::sweep {

using TableRows = std::vector<std::vector<std::string>>;

struct TableFit {
  // Number of the first columns, which name a row: each part of a split table repeats them. If they
  // take more than half of the width, a row number replaces them.
  size_t names = 1;
  size_t words = 1;   // number of the first columns that are no numbers
  int64_t width = 0;  // 0: any width
};

// The first of `rows` is the heading; the last column holds words. The table is wider than
// TableFit::width only if a single name or number is wider.
std::string fitted_table(TableRows rows, const TableFit& fit);

}  // namespace convoy::sweep
