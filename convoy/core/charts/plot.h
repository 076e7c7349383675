// SPDX-License-Identifier: Apache-2.0
//
// Charts of curves and bars, with axes, ticks and legend, as SVG; curves as text for terminals too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/telemetry/run_history.h"

namespace convoy::charts {

// A band shaded between `low` and `high`. A point that is not finite leaves a gap.
struct BandPoint {
  int64_t step = 0;
  double low = 0;
  double high = 0;
};

// From `low` to `high` on the x axis. Not with log_y: it stands on 0.
struct PlotBar {
  int64_t low = 0;
  int64_t high = 0;
  double height = 0;
};

struct PlotSeries {
  std::string label{};  // empty: not in the legend
  std::vector<telemetry::CurvePoint> points{};
  int color = 0;         // index into the palette; series of one run share it
  bool smooth = false;   // faint raw line under a smoothed one
  bool markers = false;  // dots at the points
  bool dashed = false;
  std::vector<BandPoint> band{};
  std::vector<PlotBar> bars{};
};

struct PlotOptions {
  std::string title{};
  std::string subtitle{};  // smaller, below the title
  std::string x_label = "step";
  std::string y_label = "loss";
  int64_t width = 1000;  // pixels
  int64_t height = 600;
  bool log_x = false;  // used only when all steps are positive
  // Names of steps 0, 1, ...: the axis shows them in place of numbers.
  std::vector<std::string> x_names{};
  bool log_y = false;
  bool clear_legend = false;  // room above the curves, so that the legend hides none of them
  double smoothing = 0.6;     // weight of the past in the debiased moving average; 0 = off
};

// The curves of these runs in one chart: training loss smoothed over its raw line, evaluation loss
// with markers.
std::vector<PlotSeries> loss_series(const std::vector<telemetry::RunHistory>& runs);

std::string plot_svg(const std::vector<PlotSeries>& series, const PlotOptions& options);

// Charts side by side, each with its own width. The height is the tallest chart's.
struct PlotPanel {
  PlotOptions options{};
  std::vector<PlotSeries> series{};
};
std::string panels_svg(const std::vector<PlotPanel>& panels);

struct TextPlotOptions {
  int64_t columns = 100;
  int64_t rows = 24;
  bool color = false;
  bool log_y = false;
};

// Braille dots, with axes and a legend; lines end in '\n'.
std::string plot_text(const std::vector<PlotSeries>& series, const TextPlotOptions& options);

// Debiased exponential moving average, as TensorBoard smooths.
std::vector<telemetry::CurvePoint> smoothed(const std::vector<telemetry::CurvePoint>& points,
                                            double weight);

// Round axis positions (1, 2 or 5 times a power of ten) that cover [low, high] with about `wanted`
// ticks.
std::vector<double> nice_ticks(double low, double high, int wanted);

}  // namespace convoy::charts
