// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "convoy/core/charts/chart_axis.h"
#include "convoy/core/charts/chart_legend.h"
#include "convoy/core/charts/chart_words.h"

namespace convoy::charts {
namespace {

constexpr ChartColor kGrid = {225, 225, 225};

// Distances in letter heights.
constexpr double kTitleRow = 1.7, kMarkRow = 1.45, kLabelRow = 1.6, kTickLength = 0.35;

// Axes, marks and curves of one panel.
class ChartPainter {
 public:
  // `size`: the panel's size without legend and caption.
  ChartPainter(SvgCanvas& canvas, const PlotPanel& panel, ChartPoint size)
      : canvas_(canvas),
        series_(panel.series),
        options_(panel.options),
        letter_(panel.options.font_size) {
    constexpr size_t kMostLines = 3;
    rows_top_ = (options_.title.empty() ? 0.6 : kTitleRow + 0.3) * letter_;
    top_ = rows_top_;
    if (!options_.rows.empty())
      top_ += (kMarkRow * static_cast<double>(options_.rows.size()) + 0.3) * letter_;
    bottom_ = size.y - (kTickLength + 1.35 + kLabelRow) * letter_;
    right_ = size.x - 1.2 * letter_;
    place_axes();
    // The name of the y axis may be longer than the axis, up to the top of the panel.
    const double below = x_.upright ? tallest_name() - letter_ : 0;
    y_label_ = {options_.y_label, bottom_ - 0.5 * letter_ - below, 1.08 * letter_, kMostLines};
    place_axes();
    title_ = {options_.title, right_ - left_, 1.15 * letter_, kMostLines, true};
    x_label_ = {options_.x_label, right_ - left_, 1.08 * letter_, kMostLines};
    rows_top_ += title_.more_height();
    top_ += title_.more_height();
    bottom_ -= x_label_.more_height();
    place_axes();
    if (!x_.upright) return;
    bottom_ -= tallest_name() - letter_;
    y_ = y_axis(series_, options_, bottom_ - top_);
  }

  void paint() {
    paint_axes();
    paint_rows();
    for (const PlotSeries& one : series_) paint_bars(one);
    for (const PlotSeries& one : series_) paint_band(one);
    // Dashed and dotted series show theory; they are drawn first, under the data.
    for (const bool solid : {false, true})
      for (const PlotSeries& one : series_)
        if ((one.dash == Dash::Solid) == solid) paint_series(one);
  }

 private:
  double x_of(double value) const { return left_ + (right_ - left_) * x_.share(value); }
  double y_of(double value) const { return bottom_ - (bottom_ - top_) * y_.share(value); }

  LineStyle grid_style() const { return {.color = kGrid, .width = 0.075 * letter_}; }
  LineStyle frame_style() const { return {.color = kFaintInk, .width = 0.085 * letter_}; }

  void place_axes() {
    y_ = y_axis(series_, options_, bottom_ - top_);
    left_ = (1.9 + 0.8) * letter_ + y_label_.more_height() + kWidestFont * widest_name();
    x_ = x_axis(series_, options_, right_ - left_);
  }

  double widest_name() const {
    double widest = 0;
    for (const AxisTick& tick : y_.ticks) widest = std::max(widest, text_width(tick.text, letter_));
    for (const MarkRow& row : options_.rows)
      widest = std::max(widest, text_width(row.label, letter_));
    return widest;
  }

  double tallest_name() const {
    double tallest = letter_;
    for (const AxisTick& tick : x_.ticks)
      tallest = std::max(tallest, text_width(tick.text, letter_));
    return tallest;
  }

  void paint_ticks() {
    const TextStyle at_left{.color = kFaintInk, .size = letter_, .anchor = TextAnchor::End};
    for (const AxisTick& tick : y_.ticks) {
      const double y = y_of(tick.at);
      const bool named = !tick.text.empty();
      if (named) canvas_.polyline({{left_, y}, {right_, y}}, grid_style());
      canvas_.polyline({{left_ - (named ? 1 : 0.6) * kTickLength * letter_, y}, {left_, y}},
                       frame_style());
      canvas_.text({left_ - 0.6 * letter_, y + 0.35 * letter_}, tick.text, at_left);
    }
    for (const AxisTick& tick : x_.ticks) {
      const double x = x_of(tick.at);
      const bool named = !tick.text.empty();
      const double end = bottom_ + (named ? 1 : 0.6) * kTickLength * letter_;
      if (named) canvas_.polyline({{x, top_}, {x, bottom_}}, grid_style());
      canvas_.polyline({{x, bottom_}, {x, end}}, frame_style());
      canvas_.text(x_.upright ? ChartPoint{x + 0.35 * letter_, end + 0.3 * letter_}
                              : ChartPoint{x, end + 1.05 * letter_},
                   tick.text,
                   {.color = kFaintInk,
                    .size = letter_,
                    .anchor = x_.upright ? TextAnchor::End : TextAnchor::Middle,
                    .upward = x_.upright});
    }
  }

  void paint_axes() {
    canvas_.begin_group("axes");
    paint_ticks();
    canvas_.end_group();
    canvas_.begin_group("frame");
    canvas_.polyline({{left_, top_}, {left_, bottom_}, {right_, bottom_}}, frame_style());
    canvas_.end_group();
    if (y_.ticks.empty())
      canvas_.text({(left_ + right_) / 2, (top_ + bottom_) / 2}, "no values",
                   {.color = kFaintInk, .size = letter_, .anchor = TextAnchor::Middle});
    paint_words();
  }

  void paint_words() {
    const double below = kTickLength * letter_ + (x_.upright ? tallest_name() : 0);
    double base = bottom_ + below + (x_.upright ? 1.5 : 2.45) * letter_;
    for (const std::string& line : x_label_.lines) {
      canvas_.text({(left_ + right_) / 2, base}, line,
                   {.color = kInk, .size = x_label_.size, .anchor = TextAnchor::Middle});
      base += x_label_.line_height();
    }
    double reach = 0;
    for (const std::string& line : y_label_.lines)
      reach = std::max(reach, text_width(line, y_label_.size) / 2);
    const double y_middle = std::max((top_ + bottom_) / 2, reach + 0.5 * letter_);
    base = 1.4 * letter_;
    for (const std::string& line : y_label_.lines) {
      canvas_.text(
          {base, y_middle}, line,
          {.color = kInk, .size = y_label_.size, .anchor = TextAnchor::Middle, .upward = true});
      base += y_label_.line_height();
    }
    base = 1.25 * letter_;
    for (const std::string& line : title_.lines) {
      canvas_.text({left_, base}, line, {.color = kInk, .size = title_.size, .bold = true});
      base += title_.line_height();
    }
  }

  void paint_rows() {
    if (options_.rows.empty()) return;
    canvas_.begin_group("rows");
    double base = rows_top_ + letter_;
    for (const MarkRow& row : options_.rows) {
      canvas_.text({left_ - 0.6 * letter_, base}, row.label,
                   {.color = kFaintInk, .size = letter_, .anchor = TextAnchor::End});
      for (size_t begin = 0; begin < row.marks.size();) {
        size_t end = begin + 1;
        while (end < row.marks.size() && row.marks[end].x == row.marks[begin].x) ++end;
        const double here = x_of(row.marks[begin].x);
        const double before = begin > 0 ? here - x_of(row.marks[begin - 1].x) : here - left_;
        const double behind =
            end < row.marks.size() ? x_of(row.marks[end].x) - here : right_ - here + letter_;
        paint_marks(std::span(row.marks).subspan(begin, end - begin), base, before, behind);
        begin = end;
      }
      base += kMarkRow * letter_;
    }
    canvas_.polyline({{left_, top_}, {right_, top_}}, grid_style());
    canvas_.end_group();
  }

  // Draws marks that share an x side by side, or as one grey mark if there is no room. Two
  // neighbouring groups of marks may each take half of the space between them.
  void paint_marks(std::span<const RowMark> marks, double base, double before, double behind) {
    const auto width_of = [&](const RowMark& mark) {
      const std::string count = mark.count > 1 ? std::to_string(mark.count) : "";
      return 0.9 * letter_ + text_width(count, 0.85 * letter_);
    };
    RowMark all = marks.front();
    double width = 0;
    for (const RowMark& mark : marks) width += width_of(mark);
    double x = x_of(all.x);
    if (marks.size() > 1 && width > (before + behind) / 2) {
      for (const RowMark& mark : marks.subspan(1)) all.count += mark.count;
      all.color = kInkColor;
      marks = std::span(&all, 1);
    } else if (marks.size() > 1) {
      x = std::min(x - (width - 0.9 * letter_) / 2, right_ + 1.5 * letter_ - width);
    }
    for (const RowMark& mark : marks) {
      const ChartColor color = color_of(mark.color);
      canvas_.markers(
          {{x, base - 0.36 * letter_}},
          {.shape = mark.marker, .radius = 0.3 * letter_, .color = color, .hollow = true});
      if (mark.count > 1)
        canvas_.text({x + 0.45 * letter_, base}, std::to_string(mark.count),
                     {.color = color, .size = 0.85 * letter_});
      x += width_of(mark);
    }
  }

  // The runs of points between NaNs: a NaN leaves a gap.
  std::vector<std::vector<ChartPoint>> pieces_of(const std::vector<PlotPoint>& points) const {
    std::vector<std::vector<ChartPoint>> pieces(1);
    for (const PlotPoint& point : points) {
      if (y_.shows(point.value)) {
        pieces.back().push_back({x_of(point.x), y_of(point.value)});
      } else if (!pieces.back().empty()) {
        pieces.emplace_back();
      }
    }
    if (pieces.back().empty()) pieces.pop_back();
    return pieces;
  }

  void paint_bars(const PlotSeries& series) {
    for (const PlotBar& bar : series.bars) {
      const double left = x_of(static_cast<double>(bar.low));
      const double right = x_of(static_cast<double>(bar.high));
      const double top = y_of(bar.height);
      canvas_.rectangle({left + 0.5, top}, {std::max(0.5, right - left - 1), bottom_ - top},
                        color_of(series.color), 1);
    }
  }

  void paint_whisker(double x, double low, double high, const PlotSeries& series) {
    const double cap = 0.25 * letter_ * series.weight;
    const LineStyle style{.color = color_of(series.color),
                          .width = 0.1 * letter_ * series.weight,
                          .opacity = series.opacity};
    canvas_.polyline({{x, low}, {x, high}}, style);
    for (const double y : {low, high}) canvas_.polyline({{x - cap, y}, {x + cap, y}}, style);
  }

  void paint_band(const PlotSeries& series) {
    std::vector<ChartPoint> above, below;
    const auto paint_piece = [&] {
      // Whiskers without a height are not drawn: their caps would be visible beside the marks.
      if (std::equal(above.begin(), above.end(), below.begin(), below.end(),
                     [](ChartPoint up, ChartPoint down) { return up.y == down.y; }))
        above.clear();
      if (above.size() == 1 || !series.joined || series.whiskers)
        for (size_t at = 0; at < above.size(); ++at)
          paint_whisker(above[at].x, below[at].y, above[at].y, series);
      else if (!above.empty()) {
        above.insert(above.end(), below.rbegin(), below.rend());
        canvas_.area(above, color_of(series.color), 0.18);
      }
      above.clear();
      below.clear();
    };
    for (const BandPoint& point : series.band) {
      if (!std::isfinite(point.low) || !y_.shows(point.high)) {
        paint_piece();
        continue;
      }
      // A low end below the range of a logarithmic axis is drawn at the bottom of the axis.
      const double low = y_.shows(point.low) ? std::min(y_of(point.low), bottom_) : bottom_;
      above.push_back({x_of(point.x), y_of(point.high)});
      below.push_back({x_of(point.x), low});
    }
    paint_piece();
  }

  void paint_piece(const std::vector<ChartPoint>& piece, const PlotSeries& series,
                   const LineStyle& style, bool smooth) {
    const bool alone = piece.size() == 1;
    // A curve that has only one point and no markers is drawn as a short line.
    const double reach = 0.9 * letter_;
    if (alone && series.marker == Marker::None && !smooth && series.joined)
      canvas_.polyline({{piece[0].x - reach, piece[0].y}, {piece[0].x + reach, piece[0].y}}, style);
    else if (!alone && series.joined)
      canvas_.polyline(piece, style);
    canvas_.markers(piece, {.shape = series.marker,
                            .radius = 0.27 * letter_ * series.weight,
                            .color = style.color,
                            .opacity = series.opacity,
                            .hollow = series.hollow});
  }

  void paint_series(const PlotSeries& series) {
    const ChartColor color = color_of(series.color);
    const bool smooth = series.smooth && options_.smoothing > 0 && series.points.size() > 2;
    const LineStyle style{.color = color,
                          .width = (smooth ? 0.08 : 0.155) * letter_ * series.weight,
                          .opacity = (smooth ? 0.3 : 1) * series.opacity,
                          .dash = series.dash};
    canvas_.begin_group("series", series.seed, series.title);
    const auto pieces = pieces_of(series.points);
    for (const auto& piece : pieces) paint_piece(piece, series, style, smooth);
    for (size_t at = 1; series.bridged && at < pieces.size(); ++at)
      canvas_.polyline({pieces[at - 1].back(), pieces[at].front()}, {.color = color,
                                                                     .width = 0.08 * letter_,
                                                                     .opacity = series.opacity,
                                                                     .dash = Dash::Dotted});
    if (smooth)
      for (const auto& piece : pieces_of(smoothed(series.points, options_.smoothing)))
        canvas_.polyline(piece, {.color = color, .width = 0.17 * letter_});
    canvas_.end_group();
  }

  SvgCanvas& canvas_;
  const std::vector<PlotSeries>& series_;
  const PlotOptions& options_;
  double letter_;
  ChartWords title_, x_label_, y_label_;
  double rows_top_ = 0, top_ = 0, bottom_ = 0, left_ = 0, right_ = 0;
  ChartAxis x_, y_;
};

}  // namespace

std::vector<PlotPoint> plot_points(const std::vector<telemetry::CurvePoint>& curve) {
  std::vector<PlotPoint> points;
  points.reserve(curve.size());
  for (const telemetry::CurvePoint& point : curve)
    points.push_back({static_cast<double>(point.step), point.value});
  return points;
}

std::vector<PlotSeries> loss_series(const std::vector<telemetry::RunHistory>& runs) {
  std::vector<PlotSeries> series;
  int color = 0;
  for (const telemetry::RunHistory& run : runs) {
    const std::string prefix = runs.size() > 1 ? run.name + " " : "";
    const bool alone = runs.size() == 1;
    if (!run.train_loss.empty())
      series.push_back({.label = prefix + "train",
                        .points = plot_points(run.train_loss),
                        .color = color,
                        .smooth = true});
    if (!run.eval_loss.empty())
      series.push_back({.label = prefix + "eval",
                        .points = plot_points(run.eval_loss),
                        .color = alone ? color + 1 : color,
                        .marker = Marker::Disc,
                        .dash = alone ? Dash::Solid : Dash::Dashed});
    ++color;
  }
  return series;
}

std::string plot_svg(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  return plot_svg({.panels = {{.options = options, .series = series}}});
}

std::string plot_svg(const PlotFigure& figure) {
  constexpr double kLeastShareOfAxes = 0.6;  // share of the figure's height
  // These sizes count letter heights, so that large letters make a panel larger.
  constexpr double kLeastWidth = 20, kLeastHeight = 14, kUprightRoom = 8;
  constexpr size_t kMostTitleLines = 4;
  const auto width_of = [](const PlotPanel& panel) {
    return std::max(panel.options.width, kLeastWidth * panel.options.font_size);
  };
  double width = 0, height = 0, letter = 0, least_height = 0;
  for (const PlotPanel& panel : figure.panels) {
    width += width_of(panel);
    height = std::max(height, panel.options.height);
    letter = std::max(letter, panel.options.font_size);
    const double rows = kLeastHeight + (panel.options.x_names.empty() ? 0 : kUprightRoom);
    least_height = std::max(least_height, rows * panel.options.font_size);
  }
  const double margin = letter, inner = width - 2 * margin;
  const double caption_size = 0.9 * letter;
  const ChartWords title(figure.title, inner / kWidestFont, 1.3 * letter, kMostTitleLines, true);
  const ChartLegend legend(figure.panels, inner, letter);
  const std::vector<std::string> caption =
      wrapped(figure.caption, inner / kWidestFont, caption_size);
  const double title_height = figure.title.empty() ? 0 : 2 * letter + title.more_height();
  const double caption_height =
      caption.empty() ? 0 : (0.5 + 1.3 * static_cast<double>(caption.size())) * caption_size;
  const double around = title_height + legend.height() + caption_height + 0.5 * letter;
  const double panel_height = std::max({height - around, kLeastShareOfAxes * height, least_height});

  SvgCanvas canvas(width, panel_height + around, figure.scale);
  double y = 1.5 * letter;
  for (const std::string& line : title.lines) {
    canvas.text({margin, y}, line, {.color = kInk, .size = title.size, .bold = true});
    y += title.line_height();
  }
  double shift = 0;
  for (const PlotPanel& panel : figure.panels) {
    canvas.begin_panel({shift, title_height});
    ChartPainter(canvas, panel, {width_of(panel), panel_height}).paint();
    canvas.end_group();
    shift += width_of(panel);
  }
  y = title_height + panel_height;
  legend.paint(canvas, {margin, y});
  y += legend.height() + 0.5 * caption_size;
  for (const std::string& line : caption) {
    y += 1.3 * caption_size;
    canvas.text({margin, y - 0.3 * caption_size}, line, {.color = kFaintInk, .size = caption_size});
  }
  return canvas.finish();
}

std::vector<PlotPoint> smoothed(const std::vector<PlotPoint>& points, double weight) {
  std::vector<PlotPoint> result;
  double average = 0;
  double total_weight = 0;
  for (const PlotPoint& point : points) {
    if (std::isfinite(point.value)) {
      average = weight * average + (1 - weight) * point.value;
      total_weight = weight * total_weight + (1 - weight);
      result.push_back({point.x, average / total_weight});
    } else {
      result.push_back(point);
    }
  }
  return result;
}

}  // namespace convoy::charts
