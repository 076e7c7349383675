// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/matrix_plot.h"

#include <algorithm>
#include <numeric>

#include "convoy/core/charts/svg_canvas.h"

namespace convoy::charts {
namespace {

constexpr double kCell = 64;
constexpr double kMatrixTop = 48;
constexpr double kMargin = 24;
constexpr double kLetter = 8;  // approximate width of a letter in a name
constexpr double kTitleLetter = 9;
constexpr ChartColor kMatrixInk = {38, 38, 38};
constexpr ChartColor kMatrixWhite = {255, 255, 255};
constexpr ChartColor kFill = {0, 114, 178};

struct Layout {
  double name_width = 0;
  double left = 0;
  double bottom = 0;
  double side = 0;  // side of the square of cells
  int64_t width = 0;
  int64_t height = 0;
};

Layout layout_of(const MatrixPlot& plot) {
  size_t longest = 1;
  for (const std::string& name : plot.names) longest = std::max(longest, name.size());
  Layout layout;
  layout.name_width = kLetter * static_cast<double>(longest);
  layout.left = kMargin + 24 + layout.name_width + 8;
  layout.side = kCell * static_cast<double>(plot.names.size());
  // Names below the matrix are turned upright when they are wider than a cell.
  layout.bottom =
      kMatrixTop + layout.side + (layout.name_width > kCell ? layout.name_width : 12) + 40;
  const double wanted =
      std::max(layout.left + layout.side + kMargin,
               2 * kMargin + kTitleLetter * static_cast<double>(plot.title.size()));
  layout.width = static_cast<int64_t>(wanted);
  layout.height = static_cast<int64_t>(layout.bottom);
  return layout;
}

void draw_cells(SvgCanvas& canvas, const MatrixPlot& plot, const Layout& layout) {
  for (size_t row = 0; row < plot.counts.size(); ++row) {
    const std::vector<int64_t>& counts = plot.counts[row];
    const auto total = static_cast<double>(
        std::max<int64_t>(1, std::accumulate(counts.begin(), counts.end(), int64_t{0})));
    for (size_t column = 0; column < counts.size(); ++column) {
      const ChartPoint corner{layout.left + kCell * static_cast<double>(column),
                              kMatrixTop + kCell * static_cast<double>(row)};
      const double share = static_cast<double>(counts[column]) / total;
      canvas.rectangle(corner, {kCell - 1, kCell - 1}, kFill, 0.04 + 0.96 * share);
      canvas.text({corner.x + kCell / 2, corner.y + kCell / 2 + 5}, std::to_string(counts[column]),
                  {.color = share > 0.5 ? kMatrixWhite : kMatrixInk,
                   .size = 14,
                   .anchor = TextAnchor::Middle});
    }
  }
}

void draw_names(SvgCanvas& canvas, const MatrixPlot& plot, const Layout& layout) {
  const bool upward = layout.name_width > kCell;
  for (size_t place = 0; place < plot.names.size(); ++place) {
    const double middle = kCell * (static_cast<double>(place) + 0.5);
    canvas.text({layout.left - 8, kMatrixTop + middle + 5}, plot.names[place],
                {.color = kMatrixInk, .anchor = TextAnchor::End});
    canvas.text(
        {layout.left + middle + (upward ? 5 : 0), kMatrixTop + layout.side + (upward ? 6 : 18)},
        plot.names[place],
        {.color = kMatrixInk,
         .anchor = upward ? TextAnchor::End : TextAnchor::Middle,
         .upward = upward});
  }
  canvas.text({layout.left + layout.side / 2, layout.bottom - 12}, plot.column_label,
              {.color = kMatrixInk, .anchor = TextAnchor::Middle, .bold = true});
  canvas.text({kMargin, kMatrixTop + layout.side / 2}, plot.row_label,
              {.color = kMatrixInk, .anchor = TextAnchor::Middle, .bold = true, .upward = true});
}

}  // namespace

std::string matrix_svg(const MatrixPlot& plot) {
  const Layout layout = layout_of(plot);
  SvgCanvas canvas(static_cast<double>(layout.width), static_cast<double>(layout.height));
  canvas.text({kMargin, 28}, plot.title, {.color = kMatrixInk, .size = 16, .bold = true});
  draw_cells(canvas, plot, layout);
  draw_names(canvas, plot, layout);
  return canvas.finish();
}

}  // namespace convoy::charts
