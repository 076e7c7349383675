// SPDX-License-Identifier: Apache-2.0
//
// A shape is drawn as the coverage of each pixel (1 minus the distance to its edge, clamped), then
// blended once.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/core/charts/chart_canvas.h"

namespace convoy::charts {
namespace {

constexpr double kDashOn = 6;
constexpr double kDashPeriod = 10;
constexpr double kLetterGap = 0.5;  // in units of the glyph grid

double distance_to_segment(ChartPoint at, ChartPoint from, ChartPoint to) {
  const double dx = to.x - from.x;
  const double dy = to.y - from.y;
  const double length2 = dx * dx + dy * dy;
  const double along =
      length2 > 0 ? std::clamp(((at.x - from.x) * dx + (at.y - from.y) * dy) / length2, 0.0, 1.0)
                  : 0.0;
  return std::hypot(at.x - from.x - along * dx, at.y - from.y - along * dy);
}

std::vector<std::vector<ChartPoint>> dashes_of(const std::vector<ChartPoint>& points) {
  std::vector<std::vector<ChartPoint>> dashes;
  double travelled = 0;
  for (size_t index = 0; index + 1 < points.size(); ++index) {
    const ChartPoint from = points[index];
    const ChartPoint to = points[index + 1];
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    for (double at = 0; at < length;) {
      const double phase = std::fmod(travelled + at, kDashPeriod);
      const bool on = phase < kDashOn;
      const double next = std::min(length, at + (on ? kDashOn : kDashPeriod) - phase + 1e-9);
      const auto point = [&](double distance) {
        return ChartPoint{from.x + (to.x - from.x) * distance / length,
                          from.y + (to.y - from.y) * distance / length};
      };
      if (on) dashes.push_back({point(at), point(next)});
      at = next;
    }
    travelled += length;
  }
  return dashes;
}

void put_big_endian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

void put_chunk(std::string& out, std::string_view kind, std::string_view data) {
  put_big_endian(out, static_cast<uint32_t>(data.size()));
  const size_t begin = out.size();
  out.append(kind).append(data);
  put_big_endian(
      out, static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(out.data() + begin),
                                         static_cast<uInt>(out.size() - begin))));
}

// The letters as they are drawn: each character beyond ASCII becomes one "unknown" letter.
std::string drawable_letters(std::string_view text) {
  std::string letters;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80) {
      letters.push_back(letter);
    } else if (byte >= 0xc0) {
      letters.push_back('\x7f');
    }
  }
  return letters;
}

}  // namespace

PixelCanvas::PixelCanvas(int64_t width, int64_t height)
    : width_(width),
      height_(height),
      pixels_(static_cast<size_t>(3 * width * height), 255),
      coverage_(static_cast<size_t>(width * height), 0.0f) {}

void PixelCanvas::cover(const std::vector<ChartPoint>& points, double width) {
  const double half = width / 2;
  for (size_t index = 0; index + 1 < std::max<size_t>(points.size(), 2); ++index) {
    const ChartPoint from = points[index];
    const ChartPoint to = points[std::min(index + 1, points.size() - 1)];
    const auto first_x = static_cast<int64_t>(std::max(0.0, std::min(from.x, to.x) - half - 1));
    const auto first_y = static_cast<int64_t>(std::max(0.0, std::min(from.y, to.y) - half - 1));
    const auto last_x =
        std::min(width_ - 1, static_cast<int64_t>(std::max(from.x, to.x) + half + 1));
    const auto last_y =
        std::min(height_ - 1, static_cast<int64_t>(std::max(from.y, to.y) + half + 1));
    for (int64_t y = first_y; y <= last_y; ++y)
      for (int64_t x = first_x; x <= last_x; ++x) {
        const ChartPoint center{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
        const auto covered = static_cast<float>(std::clamp(
            half + 0.5 - distance_to_segment(center, from, to), 0.0, std::min(1.0, width)));
        float& stored = coverage_[static_cast<size_t>(y * width_ + x)];
        if (covered <= stored) continue;
        if (stored == 0.0f) touched_.push_back(y * width_ + x);
        stored = covered;
      }
  }
}

void PixelCanvas::blend(ChartColor color, double opacity) {
  const std::array<uint8_t, 3> ink = {color.red, color.green, color.blue};
  for (const int64_t pixel : touched_) {
    const double share = opacity * static_cast<double>(coverage_[static_cast<size_t>(pixel)]);
    coverage_[static_cast<size_t>(pixel)] = 0.0f;
    for (size_t channel = 0; channel < 3; ++channel) {
      uint8_t& value = pixels_[static_cast<size_t>(3 * pixel) + channel];
      value = static_cast<uint8_t>(std::lround(value + share * (ink[channel] - value)));
    }
  }
  touched_.clear();
}

void PixelCanvas::rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity) {
  const auto last_x = std::min<int64_t>(width_, std::llround(corner.x + size.x));
  const auto last_y = std::min<int64_t>(height_, std::llround(corner.y + size.y));
  for (int64_t y = std::max<int64_t>(0, std::llround(corner.y)); y < last_y; ++y)
    for (int64_t x = std::max<int64_t>(0, std::llround(corner.x)); x < last_x; ++x) {
      coverage_[static_cast<size_t>(y * width_ + x)] = 1.0f;
      touched_.push_back(y * width_ + x);
    }
  blend(color, opacity);
}

void PixelCanvas::polyline(const std::vector<ChartPoint>& points, const LineStyle& style) {
  if (points.empty()) return;
  std::vector<ChartPoint> line = points;
  if (line.size() == 2 && style.width <= 1.5) {
    // A thin horizontal or vertical line on the border of two pixel rows would be a grey smear over
    // both.
    if (line[0].y == line[1].y) line[0].y = line[1].y = std::floor(line[0].y) + 0.5;
    if (line[0].x == line[1].x) line[0].x = line[1].x = std::floor(line[0].x) + 0.5;
  }
  if (style.dashed) {
    for (const auto& dash : dashes_of(line)) cover(dash, style.width);
  } else {
    cover(line, style.width);
  }
  blend(style.color, style.opacity);
}

void PixelCanvas::area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity) {
  for (int64_t y = 0; y < height_; ++y) {
    const double level = static_cast<double>(y) + 0.5;
    std::vector<double> crossings;
    for (size_t index = 0; index < corners.size(); ++index) {
      const ChartPoint from = corners[index];
      const ChartPoint to = corners[(index + 1) % corners.size()];
      if ((from.y <= level) == (to.y <= level)) continue;
      crossings.push_back(from.x + (to.x - from.x) * (level - from.y) / (to.y - from.y));
    }
    std::sort(crossings.begin(), crossings.end());
    for (size_t index = 0; index + 1 < crossings.size(); index += 2) {
      const auto last = std::min<int64_t>(width_, std::llround(crossings[index + 1]));
      for (int64_t x = std::max<int64_t>(0, std::llround(crossings[index])); x < last; ++x) {
        coverage_[static_cast<size_t>(y * width_ + x)] = 1.0f;
        touched_.push_back(y * width_ + x);
      }
    }
  }
  blend(color, opacity);
}

void PixelCanvas::disc(ChartPoint center, double radius, ChartColor color) {
  cover({center}, 2 * radius);
  blend(color, 1);
}

void PixelCanvas::text(ChartPoint at, std::string_view text, const TextStyle& style) {
  const double scale = style.size * 0.072;  // the capital height is 0.72 of the size
  const std::string letters = drawable_letters(text);
  double width = 0;
  for (const char letter : letters) width += scale * (stroke_glyph(letter).advance + kLetterGap);
  double along = 0;
  if (style.anchor == TextAnchor::Middle) along = -width / 2;
  if (style.anchor == TextAnchor::End) along = -width;
  for (const char letter : letters) {
    const Glyph glyph = stroke_glyph(letter);
    for (const auto& stroke : glyph.strokes) {
      std::vector<ChartPoint> placed;
      for (const ChartPoint& point : stroke) {
        const double right = along + scale * (point.x + 0.6);
        const double up = scale * point.y;
        placed.push_back(style.upward ? ChartPoint{at.x - up, at.y - right}
                                      : ChartPoint{at.x + right, at.y - up});
      }
      cover(placed, style.bold ? style.size * 0.125 : style.size * 0.095);
    }
    along += scale * (glyph.advance + kLetterGap);
  }
  blend(style.color, 1);
}

std::string PixelCanvas::png() const {
  std::string rows;
  for (int64_t y = 0; y < height_; ++y) {
    rows.push_back('\0');  // no row filter
    rows.append(reinterpret_cast<const char*>(pixels_.data()) + 3 * y * width_,
                static_cast<size_t>(3 * width_));
  }
  uLongf length = ::compressBound(static_cast<uLong>(rows.size()));
  std::string packed(length, '\0');
  const int status = ::compress2(reinterpret_cast<Bytef*>(packed.data()), &length,
                                 reinterpret_cast<const Bytef*>(rows.data()),
                                 static_cast<uLong>(rows.size()), Z_BEST_COMPRESSION);
  CONVOY_INVARIANT(status == Z_OK, "zlib gave {}", status);
  packed.resize(length);
  std::string header;
  put_big_endian(header, static_cast<uint32_t>(width_));
  put_big_endian(header, static_cast<uint32_t>(height_));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB
  std::string out = "\x89PNG\r\n\x1a\n";
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", packed);
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace convoy::charts
