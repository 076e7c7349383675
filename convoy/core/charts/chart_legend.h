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
    int color = 0;    // kInkColor if series of several colours share the entry
    double left = 0;  // distance from the legend's left edge
    size_t row = 0;   // first row of the entry
    std::vector<std::string> lines{};
  };

  double beside_text() const;
  void put_in_columns(double width, double widest);

  std::vector<Entry> entries_;
  size_t num_rows_ = 0;
  double font_size_;
};

}  // namespace convoy::charts
