// SPDX-License-Identifier: Apache-2.0
//
// A surface to draw a chart on: vectors or pixels. Coordinates are in pixels, y points down.
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

class ChartCanvas {
 public:
  virtual ~ChartCanvas() = default;
  virtual void rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity) = 0;
  virtual void polyline(const std::vector<ChartPoint>& points, const LineStyle& style) = 0;
  // Fills the inside of a closed polygon.
  virtual void area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity) = 0;
  virtual void disc(ChartPoint center, double radius, ChartColor color) = 0;
  // `at` is the start of the text on its base line.
  virtual void text(ChartPoint at, std::string_view text, const TextStyle& style) = 0;
};

class SvgCanvas : public ChartCanvas {
 public:
  SvgCanvas(int64_t width, int64_t height);
  void rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity) override;
  void polyline(const std::vector<ChartPoint>& points, const LineStyle& style) override;
  void area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity) override;
  void disc(ChartPoint center, double radius, ChartColor color) override;
  void text(ChartPoint at, std::string_view text, const TextStyle& style) override;
  std::string finish();  // the whole document

 private:
  std::string out_;
};

// Anti-aliased lines over white. Text uses a built-in stroke font, so no font file is needed.
class PixelCanvas : public ChartCanvas {
 public:
  PixelCanvas(int64_t width, int64_t height);
  void rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity) override;
  void polyline(const std::vector<ChartPoint>& points, const LineStyle& style) override;
  void area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity) override;
  void disc(ChartPoint center, double radius, ChartColor color) override;
  void text(ChartPoint at, std::string_view text, const TextStyle& style) override;
  std::string png() const;

 private:
  void cover(const std::vector<ChartPoint>& points, double width);
  void blend(ChartColor color, double opacity);

  int64_t width_;
  int64_t height_;
  std::vector<uint8_t> pixels_;  // RGB rows
  // Coverage of the shape that is being drawn: a line that crosses itself is not darker there.
  std::vector<float> coverage_;
  std::vector<int64_t> touched_;  // pixels with coverage
};

// Strokes of one letter on a grid 6 wide, base line at y = 0, capital height 10; `advance` to the
// next letter.
struct Glyph {
  std::vector<std::vector<ChartPoint>> strokes;
  double advance = 7;
};
Glyph stroke_glyph(char letter);

}  // namespace convoy::charts
