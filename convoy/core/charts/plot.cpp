// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "convoy/core/charts/svg_canvas.h"

namespace convoy::charts {
namespace {

// Okabe and Ito's colours, which colour-blind readers can tell apart. Yellow is left out: it is too
// light on white.
constexpr std::array<ChartColor, 7> kPalette = {{{0, 114, 178},
                                                 {213, 94, 0},
                                                 {0, 158, 115},
                                                 {204, 121, 167},
                                                 {230, 159, 0},
                                                 {86, 180, 233},
                                                 {70, 70, 70}}};
constexpr ChartColor kInk = {38, 38, 38};
constexpr ChartColor kFaintInk = {110, 110, 110};
constexpr ChartColor kGrid = {225, 225, 225};
constexpr ChartColor kWhite = {255, 255, 255};

constexpr double kLeft = 76;
constexpr double kRight = 24;
constexpr double kTop = 48;
constexpr double kBottom = 56;
constexpr double kLegendRow = 21;

ChartColor color_of(const PlotSeries& series) {
  return kPalette[static_cast<size_t>(series.color) % kPalette.size()];
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

bool drawable(double value, bool log_y) { return std::isfinite(value) && (!log_y || value > 0); }

double share(double value, const Range& range, bool logarithmic) {
  if (logarithmic) return std::log(value / range.low) / std::log(range.high / range.low);
  return (value - range.low) / (range.high - range.low);
}

struct Axes {
  Range x;
  Range y;
  std::vector<double> x_ticks;
  std::vector<double> y_ticks;
  bool log_x = false;
  bool log_y = false;
};

// Ticks at 1, 2 and 5 times powers of ten inside the range. Only the plain powers when there would
// be too many; even steps when there would be fewer than two, which would not show the scale.
std::vector<double> log_ticks(const Range& range) {
  std::vector<double> ticks;
  std::vector<double> powers;
  for (double power = std::pow(10, std::floor(std::log10(range.low))); power <= range.high;
       power *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * power;
      if (tick < range.low * 0.999 || tick > range.high * 1.001) continue;
      ticks.push_back(tick);
      if (factor == 1.0) powers.push_back(tick);
    }
  if (ticks.size() > 12 && powers.size() > 1) return powers;
  if (ticks.size() >= 2) return ticks;
  // At least two multiples of a step that fits in twice.
  constexpr int kWanted = 5;
  ticks = nice_ticks(range.low, range.high, kWanted);
  std::erase_if(ticks, [&](double tick) { return tick < range.low || tick > range.high; });
  return ticks;
}

// The share of the chart's height that the legend occupies, 0 to 1.
double legend_share(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  if (!options.clear_legend) return 0;
  const auto rows = std::count_if(series.begin(), series.end(),
                                  [](const PlotSeries& one) { return !one.label.empty(); });
  if (rows == 0) return 0;
  constexpr double kMargins = 30;
  constexpr double kMost = 0.6;
  const double height = static_cast<double>(options.height) - kTop - kBottom;
  return std::min((kMargins + kLegendRow * static_cast<double>(rows)) / height, kMost);
}

double with_headroom(double low, double high, double share) {
  return low + (high - low) / (1 - share);
}

Axes axes_of(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  const double room = legend_share(series, options);
  Axes axes;
  axes.log_y = options.log_y;
  for (const PlotSeries& one : series)
    for (const telemetry::CurvePoint& point : one.points) {
      axes.x.include(static_cast<double>(point.step));
      if (drawable(point.value, options.log_y)) axes.y.include(point.value);
    }
  for (const PlotSeries& one : series)
    for (const BandPoint& point : one.band) {
      axes.x.include(static_cast<double>(point.step));
      for (const double value : {point.low, point.high})
        if (drawable(value, options.log_y)) axes.y.include(value);
    }
  for (const PlotSeries& one : series)
    for (const PlotBar& bar : one.bars) {
      axes.x.include(static_cast<double>(bar.low));
      axes.x.include(static_cast<double>(bar.high));
      axes.y.include(0);
      axes.y.include(bar.height);
    }
  if (axes.x.empty()) axes.x = {0, 1};
  if (axes.y.empty()) axes.y = {options.log_y ? 0.1 : 0.0, 1};
  axes.log_x = options.log_x && axes.x.low > 0 && axes.x.low < axes.x.high;
  // Steps count from 1: an axis from 0 has rounder ticks.
  if (!axes.log_x && axes.x.low > 0 && axes.x.low < 0.05 * axes.x.high) axes.x.low = 0;
  if (axes.x.low == axes.x.high) axes.x = {axes.x.low - 1, axes.x.high + 1};
  axes.x_ticks = axes.log_x ? log_ticks(axes.x) : nice_ticks(axes.x.low, axes.x.high, 8);
  if (!options.x_names.empty()) {
    axes.x = {-0.5, static_cast<double>(options.x_names.size()) - 0.5};
    axes.x_ticks.clear();
    constexpr size_t kMostNames = 12;
    const size_t apart = (options.x_names.size() + kMostNames - 1) / kMostNames;
    for (size_t place = 0; place < options.x_names.size(); place += apart)
      axes.x_ticks.push_back(static_cast<double>(place));
  }
  if (options.log_y) {
    if (axes.y.high / axes.y.low < 1.02) axes.y = {axes.y.low / 1.1, axes.y.high * 1.1};
    axes.y = {axes.y.low / 1.05, axes.y.high * 1.05};
    axes.y.high = std::exp(with_headroom(std::log(axes.y.low), std::log(axes.y.high), room));
    axes.y_ticks = log_ticks(axes.y);
    return axes;
  }
  if (axes.y.high - axes.y.low < 1e-12 * std::max(1.0, std::fabs(axes.y.high))) {
    const double margin = std::max(0.1 * std::fabs(axes.y.high), 1e-6);
    axes.y = {axes.y.low - margin, axes.y.high + margin};
  }
  axes.y.high = with_headroom(axes.y.low, axes.y.high, room);
  axes.y_ticks = nice_ticks(axes.y.low, axes.y.high, 7);
  axes.y = {std::min(axes.y.low, axes.y_ticks.front()), std::max(axes.y.high, axes.y_ticks.back())};
  return axes;
}

std::string tick_text(double value) {
  if (value != 0 && (std::fabs(value) >= 1e6 || std::fabs(value) < 1e-3))
    return fmt::format("{:.1e}", value);
  // Ticks are round numbers: this cuts the rest of the binary rounding error.
  return fmt::format("{:.6g}", value);
}

class ChartPainter {
 public:
  ChartPainter(SvgCanvas& canvas, const std::vector<PlotSeries>& series, const PlotOptions& options)
      : canvas_(canvas),
        series_(series),
        options_(options),
        axes_(axes_of(series, options)),
        right_(static_cast<double>(options.width) - kRight),
        bottom_(static_cast<double>(options.height) - kBottom) {}

  void paint() {
    paint_axes();
    for (const PlotSeries& one : series_) paint_bars(one);
    for (const PlotSeries& one : series_) paint_band(one);
    for (const PlotSeries& one : series_) paint_series(one);
    paint_legend();
  }

 private:
  double x_of(double value) const {
    return kLeft + (right_ - kLeft) * share(value, axes_.x, axes_.log_x);
  }
  double y_of(double value) const {
    return bottom_ - (bottom_ - kTop) * share(value, axes_.y, axes_.log_y);
  }

  std::string x_text(double tick) const {
    return options_.x_names.empty() ? tick_text(tick)
                                    : options_.x_names.at(static_cast<size_t>(tick));
  }

  void paint_axes() {
    for (const double tick : axes_.y_ticks) {
      canvas_.polyline({{kLeft, y_of(tick)}, {right_, y_of(tick)}}, {.color = kGrid});
      canvas_.text({kLeft - 9, y_of(tick) + 4.5}, tick_text(tick),
                   {.color = kFaintInk, .anchor = TextAnchor::End});
    }
    for (const double tick : axes_.x_ticks) {
      if (tick < axes_.x.low || tick > axes_.x.high) continue;
      canvas_.polyline({{x_of(tick), kTop}, {x_of(tick), bottom_}}, {.color = kGrid});
      canvas_.polyline({{x_of(tick), bottom_}, {x_of(tick), bottom_ + 5}}, {.color = kFaintInk});
      canvas_.text({x_of(tick), bottom_ + 20}, x_text(tick),
                   {.color = kFaintInk, .anchor = TextAnchor::Middle});
    }
    canvas_.polyline({{kLeft, kTop}, {kLeft, bottom_}, {right_, bottom_}},
                     {.color = kFaintInk, .width = 1.2});
    canvas_.text({(kLeft + right_) / 2, bottom_ + 44},
                 options_.x_label + (axes_.log_x ? " (log)" : ""),
                 {.color = kInk, .size = 14, .anchor = TextAnchor::Middle});
    canvas_.text({22, (kTop + bottom_) / 2}, options_.y_label + (axes_.log_y ? " (log)" : ""),
                 {.color = kInk, .size = 14, .anchor = TextAnchor::Middle, .upward = true});
    const double title_rise = options_.subtitle.empty() ? 18 : 26;
    canvas_.text({kLeft, kTop - title_rise}, options_.title,
                 {.color = kInk, .size = 17, .bold = true});
    canvas_.text({kLeft, kTop - 9}, options_.subtitle, {.color = kFaintInk, .size = 12});
  }

  // The runs of points between NaNs: a NaN leaves a gap.
  std::vector<std::vector<ChartPoint>> pieces_of(
      const std::vector<telemetry::CurvePoint>& points) const {
    std::vector<std::vector<ChartPoint>> pieces(1);
    for (const telemetry::CurvePoint& point : points) {
      if (drawable(point.value, axes_.log_y)) {
        pieces.back().push_back({x_of(static_cast<double>(point.step)), y_of(point.value)});
      } else if (!pieces.back().empty()) {
        pieces.emplace_back();
      }
    }
    return pieces;
  }

  void paint_bars(const PlotSeries& series) {
    for (const PlotBar& bar : series.bars) {
      const double left = x_of(static_cast<double>(bar.low));
      const double right = x_of(static_cast<double>(bar.high));
      const double top = y_of(bar.height);
      canvas_.rectangle({left + 0.5, top}, {std::max(0.5, right - left - 1), bottom_ - top},
                        color_of(series), 1);
    }
  }

  void paint_band(const PlotSeries& series) {
    std::vector<ChartPoint> above, below;
    const auto paint_piece = [&] {
      above.insert(above.end(), below.rbegin(), below.rend());
      canvas_.area(above, color_of(series), 0.18);
      above.clear();
      below.clear();
    };
    for (const BandPoint& point : series.band) {
      if (!drawable(point.low, axes_.log_y) || !drawable(point.high, axes_.log_y)) {
        paint_piece();
        continue;
      }
      const double x = x_of(static_cast<double>(point.step));
      above.push_back({x, y_of(point.high)});
      below.push_back({x, y_of(point.low)});
    }
    paint_piece();
  }

  void paint_series(const PlotSeries& series) {
    const ChartColor color = color_of(series);
    const bool smooth = series.smooth && options_.smoothing > 0 && series.points.size() > 2;
    for (const auto& piece : pieces_of(series.points)) {
      canvas_.polyline(piece, {.color = color,
                               .width = smooth ? 1.0 : 2.0,
                               .opacity = smooth ? 0.3 : 1.0,
                               .dashed = series.dashed});
      if (series.markers || (piece.size() == 1 && !smooth))
        for (const ChartPoint& point : piece) canvas_.disc(point, 3.5, color);
    }
    if (!smooth) return;
    for (const auto& piece : pieces_of(smoothed(series.points, options_.smoothing)))
      canvas_.polyline(piece, {.color = color, .width = 2.2});
  }

  void paint_legend() {
    size_t longest = 0;
    int64_t rows = 0;
    for (const PlotSeries& one : series_) {
      longest = std::max(longest, one.label.size());
      rows += one.label.empty() ? 0 : 1;
    }
    if (rows == 0) return;
    const double width = 60 + 7.4 * static_cast<double>(longest);
    const double height = 14 + kLegendRow * static_cast<double>(rows);
    const ChartPoint corner{right_ - width - 8, kTop + 8};
    canvas_.rectangle(corner, {width, height}, kWhite, 0.88);
    double y = corner.y + 21;
    for (const PlotSeries& one : series_) {
      if (one.label.empty()) continue;
      canvas_.polyline({{corner.x + 12, y - 5}, {corner.x + 40, y - 5}},
                       {.color = color_of(one), .width = 2.2, .dashed = one.dashed});
      if (one.markers) canvas_.disc({corner.x + 26, y - 5}, 3.5, color_of(one));
      canvas_.text({corner.x + 49, y}, one.label, {.color = kInk});
      y += kLegendRow;
    }
  }

  SvgCanvas& canvas_;
  const std::vector<PlotSeries>& series_;
  const PlotOptions& options_;
  Axes axes_;
  double right_;
  double bottom_;
};

}  // namespace

std::vector<PlotSeries> loss_series(const std::vector<telemetry::RunHistory>& runs) {
  std::vector<PlotSeries> series;
  int color = 0;
  for (const telemetry::RunHistory& run : runs) {
    const std::string prefix = runs.size() > 1 ? run.name + " " : "";
    const bool alone = runs.size() == 1;
    if (!run.train_loss.empty())
      series.push_back(
          {.label = prefix + "train", .points = run.train_loss, .color = color, .smooth = true});
    if (!run.eval_loss.empty())
      series.push_back({.label = prefix + "eval",
                        .points = run.eval_loss,
                        .color = alone ? color + 1 : color,
                        .markers = true,
                        .dashed = !alone});
    ++color;
  }
  return series;
}

std::string plot_svg(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  return panels_svg({{.options = options, .series = series}});
}

std::string panels_svg(const std::vector<PlotPanel>& panels) {
  int64_t width = 0, height = 0;
  for (const PlotPanel& panel : panels) {
    width += panel.options.width;
    height = std::max(height, panel.options.height);
  }
  SvgCanvas canvas(width, height);
  double shift = 0;
  for (const PlotPanel& panel : panels) {
    canvas.begin_panel(shift);
    ChartPainter(canvas, panel.series, panel.options).paint();
    canvas.end_panel();
    shift += static_cast<double>(panel.options.width);
  }
  return canvas.finish();
}

std::vector<telemetry::CurvePoint> smoothed(const std::vector<telemetry::CurvePoint>& points,
                                            double weight) {
  std::vector<telemetry::CurvePoint> result;
  double average = 0;
  double total_weight = 0;
  for (const telemetry::CurvePoint& point : points) {
    if (std::isfinite(point.value)) {
      average = weight * average + (1 - weight) * point.value;
      total_weight = weight * total_weight + (1 - weight);
      result.push_back({point.step, average / total_weight});
    } else {
      result.push_back(point);
    }
  }
  return result;
}

std::vector<double> nice_ticks(double low, double high, int wanted) {
  const double rough = (high - low) / std::max(1, wanted);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (double position = first; position <= last; ++position)
    ticks.push_back(position * step + 0.0);
  return ticks;
}

}  // namespace convoy::charts
