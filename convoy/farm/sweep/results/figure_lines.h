// SPDX-License-Identifier: Apache-2.0
//
// The cells of a sweep as the lines of its figure: a line per method and group, a place of it per
// value of the axis.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

struct LinePlace {
  double x = 0;
  std::vector<const CellResult*> cells{};
};

struct FigureLine {
  std::string label{};
  std::string group{};
  std::vector<LinePlace> places{};  // in ascending order
};

// Points into the results.
struct FigureLines {
  std::string axis{};
  std::vector<double> values{};      // of the axis, ascending; empty where it has names
  std::vector<std::string> names{};  // of places 0, 1, ...
  std::vector<FigureLine> lines{};
  int64_t cells_without_axis = 0;  // they are in no line
};

// `axis`: a parameter; empty = axis_name(). Throws ConfigError when no cell has it.
FigureLines figure_lines(const SweepResults& results, const std::string& axis);

// One number of a cell; NaN where it has none. `measure`: one of figure_measures().
double measure_of(const CellResult& cell, const std::string& measure);

// The finite numbers of one place of a line, in ascending order.
std::vector<double> sorted_measures(const std::vector<const CellResult*>& cells,
                                    const std::string& measure);

// The narrowest pair of order statistics, symmetric in rank, that encloses the median of the
// distribution with a probability of 95 % at least, whatever the distribution is. NaN below six
// values, where there is none.
std::pair<double, double> median_interval(const std::vector<double>& sorted);

}  // namespace convoy::sweep
