// SPDX-License-Identifier: Apache-2.0
//
// The figure of a sweep, in panels side by side: medians over seeds with quartiles or intervals and
// the closed forms dashed; a line per seed; the share of guesses that passed. Cells without a value
// are marked above the data at their place and counted in the caption.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/charts/plot.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

enum class FigurePanel { Median, Seeds, Acceptance };
enum class FigureBand { Quartiles, Interval, None };
enum class FigureStyle { Screen, Paper };

struct FigureOptions {
  std::vector<FigurePanel> panels = {};  // empty: all that apply on screens, medians alone on paper
  std::string x = {};                    // a parameter; empty = axis_name()
  std::string y = {};                    // see figure_measures(); empty = each result by itself
  charts::AxisScale x_scale = charts::AxisScale::Auto;
  charts::AxisScale y_scale = charts::AxisScale::Auto;  // the scale for medians and seeds
  FigureBand band = FigureBand::Quartiles;
  std::string title = "auto";  // auto: workload and axis on screens, none on paper
  double width = 0;            // 1/96 inch; 0 = by the style and the number of panels
  double height = 0;
  double font_size = 0;  // points of 1/72 inch; 0 = by the style
  FigureStyle style = FigureStyle::Screen;
  double scale = 1;  // pixels for 1/96 inch of the picture
};

// Throws ConfigError: no such parameter or result, a logarithmic axis of what has no logarithm, a
// panel of guesses that no cell made.
std::string figure_svg(const SweepResults& results, const FigureOptions& options);

// A panel of that figure is to have intervals of medians, and no place has six values.
bool lacks_intervals(const SweepResults& results, const FigureOptions& options);

}  // namespace convoy::sweep
