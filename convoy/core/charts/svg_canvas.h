// SPDX-License-Identifier: Apache-2.0
//
// Paper to draw a chart on, as SVG text. Coordinates in pixels, y down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::charts {

struct ChartPoint {
  double x = 0;
  double y = 0;
};

struct ChartColor {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

struct LineStyle {
  ChartColor color;
  double width = 1;
  double opacity = 1;
  bool dashed = false;
};

enum class TextAnchor { Start, Middle, End };

struct TextStyle {
  ChartColor color;
  double size = 13;
  TextAnchor anchor = TextAnchor::Start;
  bool bold = false;
  bool upward = false;  // rotated a quarter to the left
};

class SvgCanvas {
 public:
  SvgCanvas(int64_t width, int64_t height);  // white
  // All that follows until `end_panel` is so much further to the right.
  void begin_panel(double shift);
  void end_panel();
  void rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity);
  void polyline(const std::vector<ChartPoint>& points, const LineStyle& style);
  // The inside of a closed polygon.
  void area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity);
  void disc(ChartPoint center, double radius, ChartColor color);
  // `at` is on the base line.
  void text(ChartPoint at, std::string_view text, const TextStyle& style);
  std::string finish();  // the whole document

 private:
  std::string out_;
};

}  // namespace convoy::charts
