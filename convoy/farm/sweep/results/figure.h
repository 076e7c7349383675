// SPDX-License-Identifier: Apache-2.0
//
// The figure of a sweep, with panels side by side. One panel shows medians over seeds with
// quartiles or intervals, and closed forms as dashed lines; one shows a line per seed; one shows
// the share of guesses that passed. Cells without a value are marked above the data and counted in
// the caption.
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
  std::vector<FigurePanel> panels = {};  // empty: on screens all that apply, on paper only medians
  std::string x = {};                    // parameter of the x axis; empty = axis_name()
  std::string y = {};                    // see figure_measures(); empty = each result by itself
  charts::AxisScale x_scale = charts::AxisScale::Auto;
  charts::AxisScale y_scale = charts::AxisScale::Auto;  // the scale for medians and seeds
  FigureBand band = FigureBand::Quartiles;
  std::string title = "auto";  // auto: workload and axis on screens, none on paper
  double width = 0;            // in 1/96 inch; 0 = chosen by style and number of panels
  double height = 0;
  double font_size = 0;  // in points of 1/72 inch; 0 = chosen by style
  FigureStyle style = FigureStyle::Screen;
  double scale = 1;  // pixels per 1/96 inch of the picture
};

// Throws ConfigError for an unknown parameter or result, for a logarithmic axis with values that
// have no logarithm, and for a panel of guesses if no cell made guesses.
std::string figure_svg(const SweepResults& results, const FigureOptions& options);

// True if a panel of that figure should show intervals of medians, but no place has six values.
bool lacks_intervals(const SweepResults& results, const FigureOptions& options);

}  // namespace convoy::sweep
