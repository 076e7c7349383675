// SPDX-License-Identifier: Apache-2.0
//
// A table of counts as a picture: a cell is darker when it holds a larger share of its row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::charts {

struct MatrixPlot {
  std::string title;
  std::string row_label;
  std::string column_label;
  std::vector<std::string> names;            // names of rows and columns
  std::vector<std::vector<int64_t>> counts;  // by row
};

std::string matrix_svg(const MatrixPlot& plot);

}  // namespace convoy::charts
