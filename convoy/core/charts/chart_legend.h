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
    int color = 0;    // kInkColor where series of several colours share it
    double left = 0;  // the legend's left edge
    size_t row = 0;   // its first row
    std::vector<std::string> lines{};
  };

  double beside_text() const;
  void put_in_columns(double width, double widest);

  std::vector<Entry> entries_;
  size_t num_rows_ = 0;
  double font_size_;
};

}  // namespace convoy::charts
