// SPDX-License-Identifier: Apache-2.0
//
// Draws a chart as SVG text. Coordinates are in pixels, and y grows downwards. In texts `^{...}` is
// raised: "10^{-3}".
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

enum class Dash { Solid, Dashed, Dotted };

struct LineStyle {
  ChartColor color;
  double width = 1;
  double opacity = 1;
  Dash dash = Dash::Solid;
};

enum class Marker { None, Disc, Square, Diamond, Up, Down, Cross };
constexpr int kNumMarkers = 5;  // filled markers: Disc to Down

struct MarkerStyle {
  Marker shape = Marker::Disc;
  double radius = 3.5;
  ChartColor color;
  double opacity = 1;
  bool hollow = false;
};

enum class TextAnchor { Start, Middle, End };

struct TextStyle {
  ChartColor color;
  double size = 13;
  TextAnchor anchor = TextAnchor::Start;
  bool bold = false;
  bool upward = false;  // rotated a quarter to the left
};

// The width of `text` in the fonts that figures name. The font of PNG and PDF pictures has the same
// widths.
double text_width(std::string_view text, double size, bool bold = false);

class SvgCanvas {
 public:
  // An empty white picture. `scale` enlarges the picture and everything in it.
  SvgCanvas(double width, double height, double scale = 1);
  // Shifts everything until end_group() to the right and down by `shift`.
  void begin_panel(ChartPoint shift);
  // Everything until end_group() has one class, and one seed if `seed` is not empty. Browsers show
  // `title` while the pointer is on it.
  void begin_group(std::string_view name, std::string_view seed = {}, std::string_view title = {});
  void end_group();
  void rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity);
  void polyline(const std::vector<ChartPoint>& points, const LineStyle& style);
  // Fills a polygon.
  void area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity);
  void markers(const std::vector<ChartPoint>& centers, const MarkerStyle& style);
  // `at` is on the base line.
  void text(ChartPoint at, std::string_view text, const TextStyle& style);
  std::string finish();  // returns the whole document

 private:
  std::string out_;
};

}  // namespace convoy::charts
