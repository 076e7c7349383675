// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/svg_canvas.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "convoy/core/base/utf8.h"

namespace convoy::charts {
namespace {

std::string hex(ChartColor color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

// Coordinates to a tenth of a pixel, without a zero at the end.
std::string place(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
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

std::string places(const std::vector<ChartPoint>& points) {
  std::string text;
  for (const ChartPoint& point : points)
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", place(point.x), place(point.y));
  return text;
}

std::string opacity_of(const char* name, double opacity) {
  return opacity == 1 ? "" : fmt::format(" {}=\"{:.2g}\"", name, opacity);
}

constexpr double kRaisedShare = 0.72;  // size of raised letters, as a share of the text size

// Cuts a text into pieces that are alternately not raised and raised.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t begin = text.find("^{");
    const size_t end = begin == text.npos ? begin : text.find('}', begin);
    if (end == text.npos) break;
    pieces.push_back(text.substr(0, begin));
    pieces.push_back(text.substr(begin + 2, end - begin - 2));
    text.remove_prefix(end + 1);
  }
  pieces.push_back(text);
  return pieces;
}

std::string spans_of(std::string_view text, double size) {
  const double rise = 0.38 * size;
  std::string spans;
  bool raised = false;
  for (const std::string_view piece : pieces_of(text)) {
    if (raised)
      spans += fmt::format("<tspan dy=\"{}\" font-size=\"{}\">{}</tspan>", place(-rise),
                           place(kRaisedShare * size), escaped(piece));
    else if (spans.empty())
      spans += escaped(piece);
    else if (!piece.empty())
      spans += fmt::format("<tspan dy=\"{}\">{}</tspan>", place(rise), escaped(piece));
    raised = !raised;
  }
  return spans;
}

// Widths of the ASCII letters from ' ' on, in thousandths of the font size.
constexpr std::array<int, 95> kAdvances = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};

// The width of a letter beyond ASCII, by its first byte. Letters from U+3000 on are East Asian
// letters or pictures, which are as wide as they are high.
int advance_beyond_ascii(unsigned char first) { return first >= 0xe3 ? 1000 : 600; }

double advance(std::string_view text) {
  int sum = 0;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (continues_character(letter)) continue;
    sum += byte >= ' ' && byte <= '~' ? kAdvances[byte - ' '] : advance_beyond_ascii(byte);
  }
  return sum / 1000.0;
}

std::string outline(ChartPoint center, const MarkerStyle& style) {
  // The radius is rounded as it will be written; otherwise the two arcs could be longer than a
  // circle.
  const double r = std::round(10 * style.radius) / 10;
  const auto at = [&](double x, double y) {
    return fmt::format("M{},{}", place(center.x + x), place(center.y + y));
  };
  switch (style.shape) {
    case Marker::None:
      break;
    case Marker::Disc:
      return fmt::format("{0}a{1},{1} 0 1,0 {2},0a{1},{1} 0 1,0 -{2},0", at(-r, 0), place(r),
                         place(2 * r));
    case Marker::Square:
      return fmt::format("{0}h{1}v{1}h-{1}z", at(-0.9 * r, -0.9 * r), place(1.8 * r));
    case Marker::Diamond:
      return fmt::format("{0}l{1},{1} -{1},{1} -{1},-{1}z", at(0, -1.3 * r), place(1.3 * r));
    case Marker::Up:
      return fmt::format("{}l{},{} -{},0z", at(0, -1.15 * r), place(1.2 * r), place(2.1 * r),
                         place(2.4 * r));
    case Marker::Down:
      return fmt::format("{}l{},-{} -{},0z", at(0, 1.15 * r), place(1.2 * r), place(2.1 * r),
                         place(2.4 * r));
    case Marker::Cross:
      return fmt::format("{0}l{1},{1}{2}l{1},-{1}", at(-r, -r), place(2 * r), at(-r, r));
  }
  return "";
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  constexpr double kBoldShare = 1.08;
  double width = 0;
  bool raised = false;
  for (const std::string_view piece : pieces_of(text)) {
    width += advance(piece) * (raised ? kRaisedShare : 1);
    raised = !raised;
  }
  return width * size * (bold ? kBoldShare : 1);
}

SvgCanvas::SvgCanvas(double width, double height, double scale)
    : out_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
                       "viewBox=\"0 0 {} {}\" font-family=\"Arial, 'Liberation Sans', Arimo, "
                       "Helvetica, 'Nimbus Sans', sans-serif\">\n",
                       place(width * scale), place(height * scale), place(width), place(height))) {
  rectangle({0, 0}, {width, height}, {255, 255, 255}, 1);
}

void SvgCanvas::begin_panel(ChartPoint shift) {
  out_ += fmt::format("<g class=\"panel\" transform=\"translate({} {})\">\n", place(shift.x),
                      place(shift.y));
}

void SvgCanvas::begin_group(std::string_view name, std::string_view seed, std::string_view title) {
  out_ += fmt::format("<g class=\"{}\"", escaped(name));
  if (!seed.empty()) out_ += fmt::format(" data-seed=\"{}\"", escaped(seed));
  out_ += title.empty() ? ">\n" : fmt::format("><title>{}</title>\n", escaped(title));
}

void SvgCanvas::end_group() { out_ += "</g>\n"; }

void SvgCanvas::rectangle(ChartPoint corner, ChartPoint size, ChartColor color, double opacity) {
  out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}/>\n",
                      place(corner.x), place(corner.y), place(size.x), place(size.y), hex(color),
                      opacity_of("fill-opacity", opacity));
}

void SvgCanvas::polyline(const std::vector<ChartPoint>& points, const LineStyle& style) {
  if (points.empty()) return;
  std::string dashes;
  if (style.dash == Dash::Dashed)
    dashes = fmt::format(" stroke-dasharray=\"{} {}\"", place(3 * style.width + 1),
                         place(2 * style.width));
  if (style.dash == Dash::Dotted)
    dashes = fmt::format(" stroke-dasharray=\"0.1 {}\"", place(2 * style.width + 0.5));
  out_ += fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{:.3g}\"{} stroke-linejoin=\"round\" "
      "stroke-linecap=\"round\"{} points=\"{}\"/>\n",
      hex(style.color), style.width, opacity_of("stroke-opacity", style.opacity), dashes,
      places(points));
}

void SvgCanvas::area(const std::vector<ChartPoint>& corners, ChartColor color, double opacity) {
  if (corners.empty()) return;
  out_ += fmt::format("<polygon fill=\"{}\"{} points=\"{}\"/>\n", hex(color),
                      opacity_of("fill-opacity", opacity), places(corners));
}

void SvgCanvas::markers(const std::vector<ChartPoint>& centers, const MarkerStyle& style) {
  std::string path;
  for (const ChartPoint& center : centers) path += outline(center, style);
  if (path.empty()) return;
  const bool lines = style.hollow || style.shape == Marker::Cross;
  out_ += fmt::format("<path fill=\"{}\"", lines ? "none" : hex(style.color));
  if (lines)
    out_ += fmt::format(" stroke=\"{}\" stroke-width=\"{:.3g}\"", hex(style.color),
                        0.42 * style.radius);
  out_ += fmt::format("{} d=\"{}\"/>\n", opacity_of("opacity", style.opacity), path);
}

void SvgCanvas::text(ChartPoint at, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  out_ += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" font-size=\"{2}\" fill=\"{3}\"{4}{5}{6}>{7}</text>\n", place(at.x),
      place(at.y), place(style.size), hex(style.color),
      style.anchor == TextAnchor::Start
          ? ""
          : fmt::format(" text-anchor=\"{}\"", anchor_word(style.anchor)),
      style.bold ? " font-weight=\"bold\"" : "",
      style.upward ? fmt::format(" transform=\"rotate(-90 {} {})\"", place(at.x), place(at.y)) : "",
      spans_of(text, style.size));
}

std::string SvgCanvas::finish() { return out_ + "</svg>\n"; }

}  // namespace convoy::charts
