// SPDX-License-Identifier: Apache-2.0
//
// A stroke font for chart pictures, so that no font file or library is needed. In the table a point
// is two letters: x (0-9), then y (0-9, A = 10, a/b/c = 1/2/3 below the base line). Blanks separate
// strokes; '~' smooths one.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "convoy/core/charts/chart_canvas.h"

namespace convoy::charts {
namespace {

struct Shape {
  char letter;
  double advance;
  std::string_view strokes;
};

constexpr std::array kShapes = {
    Shape{' ', 4, ""},
    Shape{'0', 8, "~2002082A4A68624020"},
    Shape{'1', 8, "183A30"},
    Shape{'2', 8, "~07092A4A69663400 0060"},
    Shape{'3', 8, "~081A4A69663525 ~35456461401002"},
    Shape{'4', 8, "404A0363"},
    Shape{'5', 8, "5A1A05 ~0526466461401001"},
    Shape{'6', 8, "~594A2A080220406264462604"},
    Shape{'7', 8, "0A6A20"},
    Shape{'8', 8, "~2506092A4A69664525 ~250401204061644525"},
    Shape{'9', 8, "~11204062684A2A0806244466"},
    Shape{'a', 7, "5750 ~5537170502103052"},
    Shape{'b', 7, "0A00 ~0527475552402002"},
    Shape{'c', 6.5, "~5647170502104051"},
    Shape{'d', 7, "5A50 ~5537170502103052"},
    Shape{'e', 7, "0454 ~545547170502104051"},
    Shape{'f', 5, "~4A3A2A2820 0747"},
    Shape{'g', 7, "575a ~5a5c2c0b ~5537170502103052"},
    Shape{'h', 7, "0A00 ~0527475550"},
    Shape{'i', 3.5, "1710 191A"},
    Shape{'j', 4.5, "~272a1c0c 292A"},
    Shape{'k', 6.5, "0A00 5703 1450"},
    Shape{'l', 3.5, "1A10"},
    Shape{'m', 10, "0700 ~0517374540 ~4557778580"},
    Shape{'n', 7, "0700 ~0527475550"},
    Shape{'o', 7, "~100205174755524010"},
    Shape{'p', 7, "070c ~0527475552402002"},
    Shape{'q', 7, "575c ~5537170502103052"},
    Shape{'r', 5.2, "0700 ~052747"},
    Shape{'s', 6.5, "~56471705144352401001"},
    Shape{'t', 5.5, "~2A212040 0747"},
    Shape{'u', 7, "5750 ~0702103052"},
    Shape{'v', 7.4, "073067"},
    Shape{'w', 9.6, "0720476087"},
    Shape{'x', 6.6, "0750 5700"},
    Shape{'y', 7.4, "0730 6730 ~302c0c"},
    Shape{'z', 6.6, "07570050"},
    Shape{'A', 8, "003A60 1353"},
    Shape{'B', 8, "000A ~0A4A69664505 ~054564614000"},
    Shape{'C', 8, "~684A2A0802204062"},
    Shape{'D', 8, "000A ~0A3A68623000"},
    Shape{'E', 7.5, "6A0A0060 0545"},
    Shape{'F', 7.5, "6A0A00 0545"},
    Shape{'G', 8, "~684A2A0802204062 626535"},
    Shape{'H', 8, "000A 606A 0565"},
    Shape{'I', 3.5, "101A"},
    Shape{'J', 7, "~5A52402002"},
    Shape{'K', 8, "000A 6A04 2660"},
    Shape{'L', 7, "0A0050"},
    Shape{'M', 10, "000A448A80"},
    Shape{'N', 8, "000A606A"},
    Shape{'O', 8, "~2002082A4A68624020"},
    Shape{'P', 8, "000A ~0A4A69664505"},
    Shape{'Q', 8, "~2002082A4A68624020 4360"},
    Shape{'R', 8, "000A ~0A4A69664505 3560"},
    Shape{'S', 8, "~684A2A080625456462402002"},
    Shape{'T', 8, "0A6A 3A30"},
    Shape{'U', 8, "~0A022040626A"},
    Shape{'V', 8, "0A306A"},
    Shape{'W', 10, "0A204A608A"},
    Shape{'X', 8, "0A60 6A00"},
    Shape{'Y', 8, "0A356A 3530"},
    Shape{'Z', 8, "0A6A0060"},
    Shape{'.', 3.5, "1011"},
    Shape{',', 3.5, "110b"},
    Shape{':', 3.5, "1011 1516"},
    Shape{'-', 6, "0444"},
    Shape{'+', 8, "0565 3238"},
    Shape{'=', 7, "0353 0656"},
    Shape{'_', 7, "0b6b"},
    Shape{'/', 6, "0a5A"},
    Shape{'|', 3.5, "1A1b"},
    Shape{'(', 4.5, "~2A07032a"},
    Shape{')', 4.5, "~0A27230a"},
    Shape{'[', 4.5, "2A0A0a2a"},
    Shape{']', 4.5, "0A2A2a0a"},
    Shape{'%', 9, "006A ~080A2A2808 ~4042626040"},
    Shape{'#', 8, "102A 405A 0363 0767"},
    Shape{'@', 8, "~65462603204062684A2A070320"},
    Shape{'\'', 3, "1A18"},
};

constexpr std::string_view kUnknownStrokes = "000A6A6000";

double height_of(char letter) {
  if (letter >= 'a') return -1.0 - (letter - 'a');
  return letter >= 'A' ? 10.0 + (letter - 'A') : letter - '0';
}

// Chaikin's corner cutting, three times. A closed ring stays closed; open ends stay in place.
std::vector<ChartPoint> rounded(std::vector<ChartPoint> points) {
  const bool ring = points.front().x == points.back().x && points.front().y == points.back().y;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<ChartPoint> finer;
    if (!ring) finer.push_back(points.front());
    for (size_t index = 0; index + 1 < points.size(); ++index) {
      const ChartPoint& from = points[index];
      const ChartPoint& to = points[index + 1];
      finer.push_back({0.75 * from.x + 0.25 * to.x, 0.75 * from.y + 0.25 * to.y});
      finer.push_back({0.25 * from.x + 0.75 * to.x, 0.25 * from.y + 0.75 * to.y});
    }
    finer.push_back(ring ? finer.front() : points.back());
    points = std::move(finer);
  }
  return points;
}

std::vector<ChartPoint> points_of(std::string_view letters) {
  std::vector<ChartPoint> points;
  for (size_t at = 0; at + 1 < letters.size(); at += 2)
    points.push_back({static_cast<double>(letters[at] - '0'), height_of(letters[at + 1])});
  return points;
}

Glyph glyph_of(double advance, std::string_view strokes) {
  Glyph glyph;
  glyph.advance = advance;
  while (!strokes.empty()) {
    const size_t end = strokes.find(' ');
    const std::string_view stroke = strokes.substr(0, end);
    glyph.strokes.push_back(stroke.front() == '~' ? rounded(points_of(stroke.substr(1)))
                                                  : points_of(stroke));
    strokes.remove_prefix(end == std::string_view::npos ? strokes.size() : end + 1);
  }
  return glyph;
}

}  // namespace

Glyph stroke_glyph(char letter) {
  const auto shape = std::find_if(kShapes.begin(), kShapes.end(),
                                  [letter](const Shape& one) { return one.letter == letter; });
  if (shape == kShapes.end()) return glyph_of(8, kUnknownStrokes);
  return glyph_of(shape->advance, shape->strokes);
}

}  // namespace convoy::charts
