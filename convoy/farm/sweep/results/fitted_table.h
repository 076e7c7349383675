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
  // The first columns, by which a row is called: each part repeats them. A number stands for them
  // where they take more than half of the width.
  size_t names = 1;
  size_t words = 1;   // the first columns that are no numbers
  int64_t width = 0;  // 0: any
};

// `rows`: the first is the heading; the last column is words. Only a name or number that is longer
// by itself goes beyond the width.
std::string fitted_table(TableRows rows, const TableFit& fit);

}  // namespace convoy::sweep
