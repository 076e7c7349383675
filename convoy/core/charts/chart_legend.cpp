// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/chart_legend.h"

#include <algorithm>
#include <array>
#include <set>

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

// In heights of letters.
constexpr double kSample = 2.4, kGap = 0.5, kBetween = 1.4, kRow = 1.5, kAbove = 0.6;

}  // namespace

ChartColor color_of(int index) {
  return index == kInkColor ? kInk : kPalette[static_cast<size_t>(index) % kPalette.size()];
}

ChartLegend::ChartLegend(const std::vector<PlotPanel>& panels, double width, double font_size)
    : font_size_(font_size) {
  std::set<std::string> known;
  double widest = 0, sum = 0;
  for (const PlotPanel& panel : panels)
    for (const PlotSeries& one : panel.series) {
      if (one.label.empty() || !known.insert(one.label).second) continue;
      const double own =
          kWidestFont * text_width(one.label, font_size) + (kSample + kGap + kBetween) * font_size;
      entries_.push_back({.series = &one, .left = sum, .width = std::min(own, width)});
      sum += own;
      widest = std::max(widest, own);
    }
  if (sum <= width) return;
  // More than a row: in columns.
  widest = std::min(widest, width);
  const auto columns = static_cast<size_t>(width / widest);
  for (size_t at = 0; at < entries_.size(); ++at) {
    entries_[at].left = widest * static_cast<double>(at % columns);
    entries_[at].row = at / columns;
  }
}

double ChartLegend::height() const {
  if (entries_.empty()) return 0;
  return (kAbove + kRow * static_cast<double>(entries_.back().row + 1)) * font_size_;
}

void ChartLegend::paint(SvgCanvas& canvas, ChartPoint corner) const {
  if (entries_.empty()) return;
  canvas.begin_group("legend");
  for (const Entry& entry : entries_) {
    const PlotSeries& one = *entry.series;
    const double left = corner.x + entry.left;
    const double base =
        corner.y + (kAbove + kRow * static_cast<double>(entry.row) + 0.8) * font_size_;
    const double middle = base - 0.36 * font_size_;
    const ChartColor color = color_of(one.color);
    if (one.joined)
      canvas.polyline({{left, middle}, {left + kSample * font_size_, middle}},
                      {.color = color, .width = 0.14 * font_size_, .dash = one.dash});
    canvas.markers(
        {{left + kSample / 2 * font_size_, middle}},
        {.shape = one.marker, .radius = 0.27 * font_size_, .color = color, .hollow = one.hollow});
    const double shift = (kSample + kGap) * font_size_;
    canvas.text({left + shift, base}, fitted(one.label, entry.width - shift, font_size_),
                {.color = kInk, .size = font_size_});
  }
  canvas.end_group();
}

}  // namespace convoy::charts
