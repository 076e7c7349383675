// SPDX-License-Identifier: Apache-2.0
//
// Charts of curves and bars, with axes, ticks and legend, as SVG; curves as text for terminals too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/charts/svg_canvas.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::charts {

// A point whose value is not finite leaves a gap.
struct PlotPoint {
  double x = 0;
  double value = 0;
};

// A band shaded between `low` and `high`. A point that is not finite leaves a gap.
struct BandPoint {
  double x = 0;
  double low = 0;
  double high = 0;
};

// A bar from `low` to `high` on the x axis. It stands on 0, so it needs a linear y axis.
struct PlotBar {
  int64_t low = 0;
  int64_t high = 0;
  double height = 0;
};

constexpr int kInkColor = -1;  // PlotSeries::color for the colour of text

struct PlotSeries {
  std::string label{};  // empty: not in the legend. Equal labels have one entry
  std::vector<PlotPoint> points{};
  int color = 0;  // index into the palette; series of one run share it
  Marker marker = Marker::None;
  bool hollow = false;  // the marker is drawn as an outline
  Dash dash = Dash::Solid;
  bool joined = true;    // a line from point to point
  bool bridged = false;  // a thin dotted line over each gap
  double weight = 1;     // scales the width of lines and the size of markers
  double opacity = 1;
  bool smooth = false;  // drawn smoothed, over a faint raw line
  // Drawn as a shaded band; points that no line joins, and single points, have whiskers instead.
  std::vector<BandPoint> band{};
  bool whiskers = false;  // all points of the band have whiskers
  std::vector<PlotBar> bars{};
  std::string seed{};   // seed of these results, for programs that read the figure
  std::string title{};  // text that browsers show under the pointer
};

// Marks above the data, for results without a value. Marks that share an x stand side by side; if
// there is no room, one grey mark stands for them.
struct RowMark {
  double x = 0;
  int color = 0;
  Marker marker = Marker::Cross;
  int64_t count = 1;  // written beside the mark if 2 or more
};
struct MarkRow {
  std::string label{};
  std::vector<RowMark> marks{};  // in ascending order of x
};

// Auto: logarithmic where all values are positive and span more than two decades.
enum class AxisScale { Linear, Log, Auto };

// The scale that Auto takes for these values. Values that are not finite do not count.
AxisScale automatic_scale(const std::vector<double>& values);

struct PlotOptions {
  std::string title{};
  std::string x_label = "step";
  std::string y_label = "loss";
  double width = 1000;  // pixels
  double height = 600;  // the figure is taller if the legend needs much of the height
  double font_size = 13;
  AxisScale x_scale = AxisScale::Linear;  // logarithmic only where all x are positive
  AxisScale y_scale = AxisScale::Linear;
  // Ticks stand at these values, with names where there is room.
  std::vector<double> x_values{};
  bool round_ticks = false;  // ticks at round numbers; the axis still spans x_values
  // Names of x = 0, 1, ...: the axis shows them in place of numbers.
  std::vector<std::string> x_names{};
  std::vector<MarkRow> rows{};  // rows of marks above the data
  double smoothing = 0.6;       // weight of the past in the debiased moving average; 0 = off
};

std::vector<PlotPoint> plot_points(const std::vector<telemetry::CurvePoint>& curve);

// The curves of these runs in one chart: training loss smoothed over its raw line, evaluation loss
// with markers.
std::vector<PlotSeries> loss_series(const std::vector<telemetry::RunHistory>& runs);

std::string plot_svg(const std::vector<PlotSeries>& series, const PlotOptions& options);

struct PlotPanel {
  PlotOptions options{};
  std::vector<PlotSeries> series{};
};
// Charts side by side, each with its own width, above one common legend. The figure is as high as
// its tallest chart with title, legend and caption.
struct PlotFigure {
  std::string title{};
  std::string caption{};  // below, broken into lines
  double scale = 1;       // enlarges the picture; sizes of panels are sizes before scaling
  std::vector<PlotPanel> panels{};
};
std::string plot_svg(const PlotFigure& figure);

struct TextPlotOptions {
  int64_t columns = 100;
  int64_t rows = 24;
  bool color = false;
  bool log_y = false;
};

// Braille dots, with axes and a legend; lines end in '\n'.
std::string plot_text(const std::vector<PlotSeries>& series, const TextPlotOptions& options);

// Debiased exponential moving average, as TensorBoard smooths.
std::vector<PlotPoint> smoothed(const std::vector<PlotPoint>& points, double weight);

// Round axis positions (1, 2 or 5 times a power of ten) that cover [low, high] with about `wanted`
// ticks.
std::vector<double> nice_ticks(double low, double high, int wanted);

// "0.05", "2×10^{-5}", "10^{6}".
std::string number_label(double value);

}  // namespace convoy::charts
