// SPDX-License-Identifier: Apache-2.0
//
// The cells of a sweep as the lines of its figure: one line per method and group, with one place
// per value of the axis.
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
  std::string label{};  // empty if no other line exists
  std::string group{};
  std::vector<LinePlace> places{};  // in ascending order, each x once unless scattered
};

// Holds pointers into the results.
struct FigureLines {
  std::string axis{};
  std::vector<double> values{};      // values along the axis, ascending; empty if it has names
  std::vector<std::string> names{};  // names of places 0, 1, ...
  std::vector<FigureLine> lines{};
  int64_t cells_without_axis = 0;  // these cells are in no line
  // Neighbours along the axis also differ in other values, like samples of a space, so no line is
  // drawn between them.
  bool scattered = false;
};

// `axis`: a parameter; empty = axis_name(). Throws ConfigError when no cell has it.
FigureLines figure_lines(const SweepResults& results, const std::string& axis);

// A kind of number that cells have.
struct FigureMeasure {
  enum class Kind { Result, TrainLoss, AcceptedShare, Seconds };
  Kind kind = Kind::Result;
  size_t result = 0;  // for Kind::Result: index in SweepResults::metrics

  // True for the measure that tables and closed forms show.
  bool is_value() const { return kind == Kind::Result && result == 0; }
};

// The measures with this name, which is a result, value, train_loss, accepted_share or seconds.
// Every result if the name is empty. Throws ConfigError for another name.
std::vector<FigureMeasure> figure_measures(const SweepResults& results, const std::string& name);

// The cell's number; NaN if it has none.
double measure_of(const CellResult& cell, const FigureMeasure& measure);

// The finite numbers of one place of a line, in ascending order.
std::vector<double> sorted_measures(const std::vector<const CellResult*>& cells,
                                    const FigureMeasure& measure);

// The narrowest pair of order statistics, symmetric in rank, that encloses the median of the
// distribution with a probability of at least 95 %, for any distribution. NaN for fewer than six
// values, which have no such pair.
std::pair<double, double> median_interval(const std::vector<double>& sorted);

}  // namespace convoy::sweep
