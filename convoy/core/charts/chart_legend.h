// SPDX-License-Identifier: Apache-2.0
//
// The legend of a figure, below its axes.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/charts/plot.h"
#include "convoy/core/charts/svg_canvas.h"

namespace convoy::charts {

constexpr ChartColor kInk = {38, 38, 38};
constexpr ChartColor kFaintInk = {110, 110, 110};

ChartColor color_of(int index);

class ChartLegend {
 public:
  ChartLegend(const std::vector<PlotPanel>& panels, double width, double font_size);
  double height() const;
  void paint(SvgCanvas& canvas, ChartPoint corner) const;

 private:
  struct Entry {
    const PlotSeries* series = nullptr;
    double left = 0;  // of the legend
    size_t row = 0;
    double width = 0;
  };

  std::vector<Entry> entries_;
  double font_size_;
};

}  // namespace convoy::charts
