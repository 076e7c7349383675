// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/chart_legend.h"

#include <algorithm>
#include <array>
#include <map>

#include "convoy/core/charts/chart_words.h"

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

// Lengths in letter heights.
constexpr double kSample = 2.4, kGap = 0.5, kBetween = 1.4, kRow = 1.5, kAbove = 0.6;
constexpr size_t kMostLinesOfEntry = 4;  // for an entry that is wider than the figure

std::vector<std::string> first_lines(std::vector<std::string> lines, double width, double size) {
  if (lines.size() <= kMostLinesOfEntry) return lines;
  lines[kMostLinesOfEntry - 1] =
      fitted(lines[kMostLinesOfEntry - 1] + " " + lines[kMostLinesOfEntry], width, size);
  lines.resize(kMostLinesOfEntry);
  return lines;
}

}  // namespace

ChartColor color_of(int index) {
  return index == kInkColor ? kInk : kPalette[static_cast<size_t>(index) % kPalette.size()];
}

ChartLegend::ChartLegend(const std::vector<PlotPanel>& panels, double width, double font_size)
    : font_size_(font_size) {
  std::map<std::string, size_t> known;
  double widest = 0, sum = 0;
  for (const PlotPanel& panel : panels)
    for (const PlotSeries& one : panel.series) {
      if (one.label.empty()) continue;
      const auto [place, is_new] = known.try_emplace(one.label, entries_.size());
      if (!is_new) {
        Entry& entry = entries_[place->second];
        if (entry.color != one.color) entry.color = kInkColor;
        continue;
      }
      const double own =
          kWidestFont * text_width(one.label, font_size) + beside_text() + kBetween * font_size;
      entries_.push_back({.series = &one, .color = one.color, .left = sum, .lines = {one.label}});
      sum += own;
      widest = std::max(widest, own);
    }
  if (sum > width) put_in_columns(width, widest);
  for (Entry& entry : entries_) num_rows_ = std::max(num_rows_, entry.row + entry.lines.size());
}

double ChartLegend::beside_text() const { return (kSample + kGap) * font_size_; }

void ChartLegend::put_in_columns(double width, double widest) {
  const size_t columns = std::max<size_t>(static_cast<size_t>(width / widest), 1);
  const double room = (width - beside_text()) / kWidestFont;
  size_t row = 0;
  for (size_t at = 0; at < entries_.size(); ++at) {
    Entry& entry = entries_[at];
    entry.left = widest * static_cast<double>(at % columns);
    entry.row = row;
    if (columns == 1)
      entry.lines = first_lines(wrapped(entry.series->label, room, font_size_), room, font_size_);
    if ((at + 1) % columns == 0) row += entry.lines.size();
  }
}

double ChartLegend::height() const {
  if (entries_.empty()) return 0;
  return (kAbove + kRow * static_cast<double>(num_rows_)) * font_size_;
}

void ChartLegend::paint(SvgCanvas& canvas, ChartPoint corner) const {
  if (entries_.empty()) return;
  canvas.begin_group("legend");
  for (const Entry& entry : entries_) {
    const PlotSeries& one = *entry.series;
    const double left = corner.x + entry.left;
    double base = corner.y + (kAbove + kRow * static_cast<double>(entry.row) + 0.8) * font_size_;
    const double middle = base - 0.36 * font_size_;
    const ChartColor color = color_of(entry.color);
    if (one.joined)
      canvas.polyline({{left, middle}, {left + kSample * font_size_, middle}},
                      {.color = color, .width = 0.14 * font_size_, .dash = one.dash});
    canvas.markers(
        {{left + kSample / 2 * font_size_, middle}},
        {.shape = one.marker, .radius = 0.27 * font_size_, .color = color, .hollow = one.hollow});
    for (const std::string& line : entry.lines) {
      canvas.text({left + beside_text(), base}, line, {.color = kInk, .size = font_size_});
      base += kRow * font_size_;
    }
  }
  canvas.end_group();
}

}  // namespace convoy::charts
