// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/svg_canvas.h"

#include <fmt/format.h>

namespace convoy::charts {
namespace {

std::string hex(ChartColor color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML 1.0 does not allow control characters.
        out += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
  }
  return out;
}

const char* anchor_word(TextAnchor anchor) {
  if (anchor == TextAnchor::Middle) return "middle";
  return anchor == TextAnchor::End ? "end" : "start";
}

}  // namespace

SvgCanvas::SvgCanvas(int64_t width, int64_t height)
    : out_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                       "viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', "
                       "sans-serif\">\n",
                       width, height)) {
  rectangle({0, 0}, {static_cast<double>(width), static_cast<double>(height)}, {255, 255, 255}, 1);
}

void SvgCanvas::begin_panel(double shift) {
  out_ += fmt::format("<g transform=\"translate({:.2f} 0)\">\n", shift);
}

void SvgCanvas::end_panel() { out_ += "</g>\n"; }

void SvgCanvas::rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity) {
  out_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
      "fill-opacity=\"{:.2f}\"/>\n",
      corner.x, corner.y, size.x, size.y, hex(color), opacity);
}

void SvgCanvas::polyline(const std::vector<ChartPoint>& points, const LineStyle& style) {
  if (points.empty()) return;
  out_ += fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" stroke-opacity=\"{:.2f}\" "
      "stroke-linejoin=\"round\" stroke-linecap=\"round\"{} points=\"",
      hex(style.color), style.width, style.opacity,
      style.dashed ? " stroke-dasharray=\"6 4\"" : "");
  const char* separator = "";
  for (const ChartPoint& point : points) {
    out_ += fmt::format("{}{:.2f},{:.2f}", separator, point.x, point.y);
    separator = " ";
  }
  out_ += "\"/>\n";
}

void SvgCanvas::area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity) {
  if (corners.empty()) return;
  out_ +=
      fmt::format("<polygon fill=\"{}\" fill-opacity=\"{:.2f}\" points=\"", hex(color), opacity);
  const char* separator = "";
  for (const ChartPoint& point : corners) {
    out_ += fmt::format("{}{:.2f},{:.2f}", separator, point.x, point.y);
    separator = " ";
  }
  out_ += "\"/>\n";
}

void SvgCanvas::disc(ChartPoint center, double radius, ChartColor color) {
  out_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" fill=\"{}\"/>\n", center.x,
                      center.y, radius, hex(color));
}

void SvgCanvas::text(ChartPoint at, std::string_view text, const TextStyle& style) {
  out_ += fmt::format(
      "<text x=\"{0:.2f}\" y=\"{1:.2f}\" font-size=\"{2:.1f}\" fill=\"{3}\" "
      "text-anchor=\"{4}\"{5}{6}>{7}</text>\n",
      at.x, at.y, style.size, hex(style.color), anchor_word(style.anchor),
      style.bold ? " font-weight=\"bold\"" : "",
      style.upward ? fmt::format(" transform=\"rotate(-90 {:.2f} {:.2f})\"", at.x, at.y) : "",
      escaped(text));
}

std::string SvgCanvas::finish() { return out_ + "</svg>\n"; }

}  // namespace convoy::charts
