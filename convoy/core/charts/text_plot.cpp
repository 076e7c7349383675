// SPDX-License-Identifier: Apache-2.0
//
// Charts for terminals: each letter cell holds 2 x 4 braille dots.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "convoy/core/charts/plot.h"

namespace convoy::charts {
namespace {

// Bits of the dots of a braille cell, by row and column (Unicode 2800).
constexpr std::array<std::array<int, 2>, 4> kDots = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
constexpr std::array<int, 7> kTerminalColors = {34, 31, 32, 35, 33, 36, 37};
constexpr int64_t kMarginColumns = 10;

std::string braille(int dots) {
  const int code = 0x2800 + dots;
  std::string text;
  text.push_back(static_cast<char>(0xe0 | (code >> 12)));
  text.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
  text.push_back(static_cast<char>(0x80 | (code & 0x3f)));
  return text;
}

struct Cell {
  int dots = 0;
  int color = -1;
};

class DotGrid {
 public:
  DotGrid(int64_t columns, int64_t rows)
      : columns_(columns), rows_(rows), cells_(static_cast<size_t>(columns * rows)) {}

  void dot(int64_t x, int64_t y, int color) {
    if (x < 0 || y < 0 || x >= 2 * columns_ || y >= 4 * rows_) return;
    Cell& cell = cells_[static_cast<size_t>(y / 4 * columns_ + x / 2)];
    cell.dots |= kDots[static_cast<size_t>(y % 4)][static_cast<size_t>(x % 2)];
    cell.color = color;
  }

  void line(double from_x, double from_y, double to_x, double to_y, int color) {
    const auto steps = static_cast<int64_t>(
        std::ceil(std::max(std::fabs(to_x - from_x), std::fabs(to_y - from_y))));
    for (int64_t step = 0; step <= steps; ++step) {
      const double part = steps == 0 ? 0 : static_cast<double>(step) / static_cast<double>(steps);
      dot(std::llround(from_x + part * (to_x - from_x)),
          std::llround(from_y + part * (to_y - from_y)), color);
    }
  }

  std::string row_text(int64_t row, bool color) const {
    std::string text;
    int current = -1;
    for (int64_t column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[static_cast<size_t>(row * columns_ + column)];
      const int wanted = cell.dots == 0 ? -1 : cell.color;
      if (color && wanted != current) {
        text += wanted < 0
                    ? std::string("\x1b[0m")
                    : fmt::format(
                          "\x1b[{}m",
                          kTerminalColors[static_cast<size_t>(wanted) % kTerminalColors.size()]);
        current = wanted;
      }
      text += cell.dots == 0 ? std::string(" ") : braille(cell.dots);
    }
    if (current >= 0) text += "\x1b[0m";
    return text;
  }

 private:
  int64_t columns_;
  int64_t rows_;
  std::vector<Cell> cells_;
};

struct Bounds {
  double x_low = INFINITY;
  double x_high = -INFINITY;
  double y_low = INFINITY;
  double y_high = -INFINITY;
};

double scaled(double value, bool log_y) { return log_y ? std::log(value) : value; }

bool drawable_in_text(double value, bool log_y) {
  return std::isfinite(value) && (!log_y || value > 0);
}

Bounds bounds_of(const std::vector<PlotSeries>& series, bool log_y) {
  Bounds bounds;
  for (const PlotSeries& one : series)
    for (const PlotPoint& point : one.points) {
      if (!drawable_in_text(point.value, log_y)) continue;
      bounds.x_low = std::min(bounds.x_low, point.x);
      bounds.x_high = std::max(bounds.x_high, point.x);
      bounds.y_low = std::min(bounds.y_low, scaled(point.value, log_y));
      bounds.y_high = std::max(bounds.y_high, scaled(point.value, log_y));
    }
  if (bounds.x_high <= bounds.x_low) bounds.x_high = bounds.x_low + 1;
  if (bounds.y_high <= bounds.y_low) {
    bounds.y_low -= 0.5;
    bounds.y_high += 0.5;
  }
  return bounds;
}

void draw(DotGrid& grid, const PlotSeries& series, const Bounds& bounds, double width,
          double height, bool log_y) {
  bool joined = false;
  double last_x = 0;
  double last_y = 0;
  for (const PlotPoint& point : series.points) {
    if (!drawable_in_text(point.value, log_y)) {
      joined = false;
      continue;
    }
    const double x = (point.x - bounds.x_low) / (bounds.x_high - bounds.x_low) * width;
    const double y =
        (bounds.y_high - scaled(point.value, log_y)) / (bounds.y_high - bounds.y_low) * height;
    if (joined) {
      grid.line(last_x, last_y, x, y, series.color);
    } else {
      grid.dot(std::llround(x), std::llround(y), series.color);
    }
    if (series.marker != Marker::None)
      for (const int shift : {-1, 1}) {
        grid.dot(std::llround(x) + shift, std::llround(y), series.color);
        grid.dot(std::llround(x), std::llround(y) + shift, series.color);
      }
    joined = true;
    last_x = x;
    last_y = y;
  }
}

std::string legend_text(const std::vector<PlotSeries>& series, bool color) {
  std::string text(static_cast<size_t>(kMarginColumns), ' ');
  for (const PlotSeries& one : series) {
    const std::string_view sample = one.marker != Marker::None ? "━●━ " : "━━━ ";
    if (color) {
      text += fmt::format("\x1b[{}m{}\x1b[0m",
                          kTerminalColors[static_cast<size_t>(one.color) % kTerminalColors.size()],
                          sample);
    } else {
      text += sample;
    }
    text += one.label + "   ";
  }
  return text + "\n";
}

}  // namespace

std::string plot_text(const std::vector<PlotSeries>& series, const TextPlotOptions& options) {
  const Bounds bounds = bounds_of(series, options.log_y);
  if (!std::isfinite(bounds.x_low)) return "no points to draw\n";
  const int64_t columns = std::max<int64_t>(10, options.columns - kMarginColumns - 1);
  const int64_t rows = std::max<int64_t>(4, options.rows - 3);
  DotGrid grid(columns, rows);
  for (const PlotSeries& one : series)
    draw(grid, one, bounds, static_cast<double>(2 * columns - 1), static_cast<double>(4 * rows - 1),
         options.log_y);
  std::string text;
  const int64_t tick_rows = std::max<int64_t>(1, (rows - 1) / 4);
  for (int64_t row = 0; row < rows; ++row) {
    const bool tick = row % tick_rows == 0 || row == rows - 1;
    const double value = bounds.y_high - (static_cast<double>(row) + 0.5) /
                                             static_cast<double>(rows) *
                                             (bounds.y_high - bounds.y_low);
    text += tick ? fmt::format("{:>8.4g} ┤", options.log_y ? std::exp(value) : value)
                 : fmt::format("{:>8} │", "");
    text += grid.row_text(row, options.color) + "\n";
  }
  std::string line;
  for (int64_t column = 0; column < columns; ++column) line += "─";
  text += fmt::format("{:>8} └{}\n", "", line);
  const std::string first = fmt::format("{:.0f}", bounds.x_low);
  text += fmt::format("{:>10}{}{:>{}}\n", "", first, fmt::format("step {:.0f}", bounds.x_high),
                      columns - static_cast<int64_t>(first.size()));
  return text + legend_text(series, options.color);
}

}  // namespace convoy::charts
