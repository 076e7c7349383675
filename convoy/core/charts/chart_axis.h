// SPDX-License-Identifier: Apache-2.0
//
// One axis of a chart: its range, its scale and its ticks.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "convoy/core/charts/plot.h"

namespace convoy::charts {

constexpr double kMostUpright = 10;  // greatest length of an upright name, in letter heights

struct AxisRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value);
  bool empty() const { return low > high; }
};

struct AxisTick {
  double at = 0;
  std::string text{};  // empty: a tick without a name
};

struct ChartAxis {
  AxisRange range{};
  bool logarithmic = false;
  std::vector<AxisTick> ticks{};
  bool upright = false;  // the names are turned upright, because they would overlap

  bool shows(double value) const;
  double share(double value) const;  // 0 at the low end, 1 at the high end
};

ChartAxis y_axis(const std::vector<PlotSeries>& series, const PlotOptions& options, double pixels);
ChartAxis x_axis(const std::vector<PlotSeries>& series, const PlotOptions& options, double pixels);

}  // namespace convoy::charts
