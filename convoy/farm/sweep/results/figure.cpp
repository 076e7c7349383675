// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/figure_caption.h"
#include "convoy/farm/sweep/results/figure_lines.h"

namespace convoy::sweep {
namespace {

using charts::AxisScale;
using charts::Marker;
using charts::MarkRow;
using charts::PlotOptions;
using charts::PlotPanel;
using charts::PlotPoint;
using charts::PlotSeries;

bool has_points(const PlotSeries& series) {
  return std::any_of(series.points.begin(), series.points.end(),
                     [](const PlotPoint& point) { return std::isfinite(point.value); });
}

bool same_points(const std::vector<PlotPoint>& left, const std::vector<PlotPoint>& right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [](const auto& one, const auto& other) {
        return one.x == other.x &&
               (one.value == other.value || (std::isnan(one.value) && std::isnan(other.value)));
      });
}

double median_of(const std::vector<const CellResult*>& cells, double ReferenceCurve::*form) {
  std::vector<double> values;
  for (const CellResult* const cell : cells)
    if (std::isfinite(cell->reference.*form)) values.push_back(cell->reference.*form);
  return quantile(values, 0.5);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// The cells of the methods that have the measure. Other methods have no line, no mark and no place
// in the caption. All cells if no method has the measure.
SweepResults with_measure(const SweepResults& results, const FigureMeasure& measure) {
  std::set<std::string> methods;
  for (const CellResult& cell : results.cells)
    if (std::isfinite(measure_of(cell, measure))) methods.insert(cell.cell.method);
  SweepResults kept = results;
  if (!methods.empty())
    std::erase_if(kept.cells,
                  [&](const CellResult& cell) { return !methods.contains(cell.cell.method); });
  return kept;
}

class FigureMaker {
 public:
  FigureMaker(const SweepResults& results, const FigureOptions& options)
      : measures_(figure_measures(results, options.y)),
        with_measure_(measures_.front().kind == FigureMeasure::Kind::Result
                          ? std::nullopt
                          : std::optional(with_measure(results, measures_.front()))),
        results_(with_measure_ ? *with_measure_ : results),
        options_(options),
        figure_(figure_lines(results_, options.x)),
        seed_(only_seed(results_)) {
    check();
  }

  charts::PlotFigure make() const {
    const std::vector<FigurePanel> panels = chosen_panels();
    charts::PlotFigure figure{
        .title = title(),
        .caption = figure_caption(results_, figure_, measures_, panels, options_.band),
        .scale = options_.scale,
        .panels = {}};
    for (const FigureMeasure& measure : measures_)
      for (const FigurePanel panel : panels)
        if (panel != FigurePanel::Acceptance)
          figure.panels.push_back(panel == FigurePanel::Median ? medians(measure) : seeds(measure));
    // The acceptance panel shows no result, so it is added once.
    if (shows(panels, FigurePanel::Acceptance)) figure.panels.push_back(acceptance());
    for (PlotPanel& panel : figure.panels) shape(panel.options, figure.panels.size());
    if (figure.panels.size() == 1 && on_paper())
      figure.panels[0].options.title = std::exchange(figure.title, "");
    return figure;
  }

  bool lacks_intervals() const {
    return !seed_ && shows(chosen_panels(), FigurePanel::Median) &&
           std::none_of(measures_.begin(), measures_.end(), [&](const FigureMeasure& measure) {
             return has_band(figure_, measure, options_.band);
           });
  }

 private:
  bool on_paper() const { return options_.style == FigureStyle::Paper; }

  void check() const {
    if (options_.x_scale == AxisScale::Log)
      if (figure_.values.empty() || !(figure_.values.front() > 0))
        throw ConfigError(
            fmt::format("--log-x needs positive numbers as values of `{}`", figure_.axis),
            {.hint = "leave --log-x out"});
    if (shows(options_.panels, FigurePanel::Acceptance) && !has_guesses())
      throw ConfigError("--panels acceptance: no cell of this sweep guesses",
                        {.hint = "take --panels median or seeds"});
  }

  bool has_guesses() const {
    return std::any_of(results_.cells.begin(), results_.cells.end(), checks_guesses);
  }

  std::vector<FigurePanel> chosen_panels() const {
    if (!options_.panels.empty()) return options_.panels;
    if (on_paper()) return {FigurePanel::Median};
    std::vector<FigurePanel> panels = {FigurePanel::Median};
    if (measures_.size() == 1 && !seed_) panels.push_back(FigurePanel::Seeds);
    if (has_guesses()) panels.push_back(FigurePanel::Acceptance);
    return panels;
  }

  std::string title() const {
    if (options_.title != "auto") return options_.title;
    if (on_paper()) return "";
    return figure_.axis.empty()
               ? fmt::format("sweep {}", results_.workload)
               : fmt::format("sweep {} over {}", results_.workload, spaced(figure_.axis));
  }

  void shape(PlotOptions& options, size_t panels) const {
    const auto count = static_cast<double>(panels);
    constexpr double kPixelsOfPoint = 96.0 / 72.0;
    const double width = on_paper() ? std::min(320 * count, 660.0) : 240 + 440 * count;
    options.width = (options_.width > 0 ? options_.width : width) / count;
    options.height = options_.height > 0 ? options_.height : on_paper() ? 290 : 560;
    const double points = options_.font_size > 0 ? options_.font_size : on_paper() ? 8 : 10;
    options.font_size = points * kPixelsOfPoint;
  }

  PlotOptions common_options(const FigureMeasure& measure) const {
    constexpr size_t kMostNamed = 12;  // with more values, ticks are at round numbers
    PlotOptions options{.x_label = spaced(figure_.axis),
                        .y_label = measure_label(results_, measure),
                        .x_scale = options_.x_scale,
                        .y_scale = y_scale(measure),
                        .x_values = figure_.values,
                        .round_ticks = figure_.scattered && figure_.values.size() > kMostNamed,
                        .x_names = figure_.names,
                        .rows = rows(measure),
                        .smoothing = 0};
    return options;
  }

  // The y scale of a measure, for all of its panels. It is chosen by the values of all seeds.
  AxisScale y_scale(const FigureMeasure& measure) const {
    if (options_.y_scale != AxisScale::Auto) return options_.y_scale;
    std::vector<double> values;
    for (const CellResult& cell : results_.cells) values.push_back(measure_of(cell, measure));
    return charts::automatic_scale(values);
  }

  // On an axis of names, shifts the lines so that they are side by side at each name.
  double shift(size_t line) const {
    if (figure_.names.empty()) return 0;
    const auto count = static_cast<double>(figure_.lines.size());
    return (static_cast<double>(line) - (count - 1) / 2) * std::min(0.14, 0.7 / count);
  }

  PlotSeries empty_series(size_t line) const {
    const int index = static_cast<int>(line);
    return {.label = figure_.lines[line].label,
            .color = index,
            .marker = static_cast<Marker>(1 + index % charts::kNumMarkers),
            .joined = figure_.names.empty() && !figure_.scattered};
  }

  // Rows of marks for cells that have no place along the y axis, one row per reason.
  std::vector<MarkRow> rows(const FigureMeasure& measure) const {
    const auto lacks = [&](CellState state) {
      return [&, state](const CellResult& cell) {
        return cell.state == state && !std::isfinite(measure_of(cell, measure));
      };
    };
    std::vector<MarkRow> all = {row("censored", Marker::Down, lacks(CellState::Censored)),
                                row("failed", Marker::Cross, lacks(CellState::Failed)),
                                row("unfinished", Marker::Disc, lacks(CellState::Partial))};
    if (options_.y_scale == AxisScale::Log)
      all.push_back(row("not above 0", Marker::Square,
                        [&](const CellResult& cell) { return measure_of(cell, measure) <= 0; }));
    std::erase_if(all, [](const MarkRow& one) { return one.marks.empty(); });
    return all;
  }

  MarkRow row(const std::string& label, Marker marker,
              const std::function<bool(const CellResult&)>& belongs) const {
    std::multimap<double, charts::RowMark> marks;
    for (size_t line = 0; line < figure_.lines.size(); ++line)
      for (const LinePlace& place : figure_.lines[line].places) {
        const int64_t count = std::count_if(place.cells.begin(), place.cells.end(),
                                            [&](const CellResult* cell) { return belongs(*cell); });
        if (count == 0) continue;
        const double x = place.x + shift(line);
        marks.emplace(
            x, charts::RowMark{
                   .x = x, .color = static_cast<int>(line), .marker = marker, .count = count});
      }
    MarkRow row{.label = label, .marks = {}};
    for (const auto& [x, mark] : marks) row.marks.push_back(mark);
    return row;
  }

  // The panel of medians. With only one seed it shows the values, with the interval of the mean.
  PlotPanel medians(const FigureMeasure& measure) const {
    PlotPanel panel{.options = common_options(measure), .series = {}};
    panel.options.title = seed_ ? fmt::format("seed {}", *seed_)
                          : !has_band(figure_, measure, options_.band) ? "median"
                          : options_.band == FigureBand::Quartiles     ? "median and quartiles"
                                                                       : "median, 95 % interval";
    for (size_t line = 0; line < figure_.lines.size(); ++line) {
      PlotSeries series = empty_series(line);
      series.whiskers = seed_.has_value();
      for (const LinePlace& place : figure_.lines[line].places) {
        const double x = place.x + shift(line);
        const std::vector<double> sorted = sorted_measures(place.cells, measure);
        series.points.push_back({x, quantile_of_sorted(sorted, 0.5)});
        const auto [low, high] = band_at(place, measure, sorted);
        series.band.push_back({x, low, high});
      }
      if (measure.is_value() || has_points(series)) panel.series.push_back(std::move(series));
    }
    if (measure.is_value()) {
      add_theory(panel.series, "prior mean (theory)", charts::Dash::Dashed,
                 &ReferenceCurve::prior_mean);
      add_theory(panel.series, "theory", charts::Dash::Dotted, &ReferenceCurve::curve);
    }
    return panel;
  }

  // The ends of the band; NaN if there is none.
  std::pair<double, double> band_at(const LinePlace& place, const FigureMeasure& measure,
                                    const std::vector<double>& sorted) const {
    const std::pair none{std::nan(""), std::nan("")};
    if (seed_) {
      const CellResult& cell = *place.cells.front();
      const bool of_mean = options_.band == FigureBand::Interval && measure.is_value();
      return of_mean ? std::pair{cell.low(), cell.high()} : none;
    }
    switch (options_.band) {
      case FigureBand::Quartiles:
        return {quantile_of_sorted(sorted, 0.25), quantile_of_sorted(sorted, 0.75)};
      case FigureBand::Interval:
        return median_interval(sorted);
      case FigureBand::None:
        break;
    }
    return none;
  }

  // Adds one curve without a colour if all groups share it; else one curve per group, in the colour
  // of the group's first line.
  void add_theory(std::vector<PlotSeries>& series, const std::string& label, charts::Dash dash,
                  double ReferenceCurve::*form) const {
    std::vector<PlotSeries> curves;
    std::set<std::string> known;
    for (size_t line = 0; line < figure_.lines.size(); ++line) {
      const FigureLine& one = figure_.lines[line];
      PlotSeries curve{.label = one.group.empty() ? label : fmt::format("{}, {}", label, one.group),
                       .color = static_cast<int>(line),
                       .dash = dash,
                       .weight = 0.8};
      for (const LinePlace& place : one.places)
        curve.points.push_back({place.x, median_of(place.cells, form)});
      if (has_points(curve) && known.insert(one.group).second) curves.push_back(std::move(curve));
    }
    const bool shared = std::all_of(curves.begin(), curves.end(), [&](const PlotSeries& one) {
      return same_points(one.points, curves.front().points);
    });
    if (shared && !curves.empty()) {
      curves.resize(1);
      curves.front().label = label;
      curves.front().color = charts::kInkColor;
    }
    std::move(curves.begin(), curves.end(), std::back_inserter(series));
  }

  PlotPanel seeds(const FigureMeasure& measure) const {
    PlotPanel panel{.options = common_options(measure), .series = {}};
    panel.options.title = "each seed";
    for (size_t line = 0; line < figure_.lines.size(); ++line) {
      std::map<int64_t, PlotSeries> by_seed;
      for (const LinePlace& place : figure_.lines[line].places)
        for (const CellResult* const cell : place.cells) {
          const int64_t seed = cell->cell.seed;
          PlotSeries& series = by_seed.try_emplace(seed, seed_series(line, seed)).first->second;
          const bool former =
              cell->state == CellState::Former && measure.kind == FigureMeasure::Kind::Result;
          series.points.push_back({place.x + shift(line), former ? cell->metric(measure.result)
                                                                 : measure_of(*cell, measure)});
          if (options_.band == FigureBand::Interval && measure.is_value())
            series.band.push_back({place.x + shift(line), cell->low(), cell->high()});
        }
      const double opacity = std::clamp(5.0 / static_cast<double>(by_seed.size()), 0.15, 0.65);
      for (auto& [seed, series] : by_seed) {
        if (!has_points(series)) continue;
        series.opacity = opacity;
        panel.series.push_back(std::move(series));
      }
    }
    return panel;
  }

  PlotSeries seed_series(size_t line, int64_t seed) const {
    PlotSeries series = empty_series(line);
    series.bridged = series.joined;
    series.whiskers = true;
    series.weight = 0.7;
    series.seed = std::to_string(seed);
    series.title = fmt::format("{}{}seed {}", series.label, series.label.empty() ? "" : ", ", seed);
    return series;
  }

  // The panel of accepted shares. It shows the share of all guesses at an x together, and the share
  // of each seed. If no guess of a seed passed, it shows the upper bound of the share instead.
  PlotPanel acceptance() const {
    const FigureMeasure share{.kind = FigureMeasure::Kind::AcceptedShare};
    PlotPanel panel{.options = common_options(share), .series = {}};
    panel.options.title = "guesses that passed";
    panel.options.y_scale = AxisScale::Log;
    std::erase_if(panel.options.rows,
                  [](const MarkRow& row) { return row.label == "not above 0"; });
    for (size_t line = 0; line < figure_.lines.size(); ++line)
      add_shares(panel.series, line, share);
    add_theory(panel.series, "share that passes (theory)", charts::Dash::Dashed,
               &ReferenceCurve::acceptance);
    return panel;
  }

  void add_shares(std::vector<PlotSeries>& all, size_t line, const FigureMeasure& share) const {
    PlotSeries together = empty_series(line), each = empty_series(line),
               bounds = empty_series(line);
    each.label.clear();
    each.joined = bounds.joined = false;
    each.weight = 0.7;
    bounds.weight = 1.3;  // drawn around the mark of the line if both are at one place
    each.opacity = 0.4;
    bounds.label = "no guess of a seed passed; the share is below this with 95 %";
    bounds.marker = Marker::Down;
    bounds.hollow = true;
    for (const LinePlace& place : figure_.lines[line].places) {
      const double x = place.x + shift(line);
      Tally tally;
      for (const CellResult* const cell : place.cells) {
        if (!checks_guesses(*cell) || !std::isfinite(measure_of(*cell, share))) continue;
        tally.merge(cell->tally);
        if (cell->tally.accepted > 0)
          each.points.push_back({x, cell->accepted_share()});
        else
          bounds.points.push_back({x, cell->share_bound()});
      }
      together.points.push_back({x, tally.accepted > 0 ? static_cast<double>(tally.accepted) /
                                                             static_cast<double>(tally.guesses)
                                                       : std::nan("")});
    }
    if (has_points(each)) all.push_back(std::move(each));
    if (has_points(together)) all.push_back(std::move(together));
    if (has_points(bounds)) all.push_back(std::move(bounds));
  }

  std::vector<FigureMeasure> measures_;
  std::optional<SweepResults> with_measure_;  // set if not all cells are drawn
  const SweepResults& results_;
  const FigureOptions& options_;
  FigureLines figure_;
  std::optional<int64_t> seed_;  // the results' only seed
};

}  // namespace

std::string figure_svg(const SweepResults& results, const FigureOptions& options) {
  return charts::plot_svg(FigureMaker(results, options).make());
}

bool lacks_intervals(const SweepResults& results, const FigureOptions& options) {
  return options.band == FigureBand::Interval && FigureMaker(results, options).lacks_intervals();
}

}  // namespace convoy::sweep
