// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "convoy/core/charts/plot.h"
#include "convoy/farm/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

using charts::PlotPanel;
using charts::PlotSeries;

// Steps of a chart are whole numbers: values of the axis where all are, else their places, which
// have names.
class AxisPlaces {
 public:
  AxisPlaces(const std::vector<SeedSummary>& summaries) {
    std::vector<std::pair<double, std::string>> values;
    for (const SeedSummary& one : summaries) {
      whole_ = whole_ && is_whole(one.axis);
      if (!places_.try_emplace(one.axis, 0).second) continue;
      values.emplace_back(one.position, one.axis);
    }
    std::stable_sort(values.begin(), values.end(),
                     [](const auto& left, const auto& right) { return left.first < right.first; });
    for (const auto& [position, text] : values) {
      places_[text] = whole_ ? static_cast<int64_t>(position) : static_cast<int64_t>(names_.size());
      if (!whole_) names_.push_back(text);
    }
  }
  int64_t step(const std::string& value) const {
    const auto found = places_.find(value);
    return found == places_.end() ? 0 : found->second;
  }
  const std::vector<std::string>& names() const { return names_; }  // empty: values are numbers
  // As widths do that double from one to the next.
  bool spans_octaves() const {
    constexpr int64_t kFactor = 8;
    if (!whole_ || places_.empty()) return false;
    const auto [least, most] = std::minmax_element(
        places_.begin(), places_.end(),
        [](const auto& left, const auto& right) { return left.second < right.second; });
    return least->second > 0 && most->second >= kFactor * least->second;
  }

 private:
  static bool is_whole(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return (text.empty() || end == text.c_str() + text.size()) && std::trunc(value) == value &&
           std::fabs(value) < 1e15;
  }

  bool whole_ = true;
  std::map<std::string, int64_t> places_;
  std::vector<std::string> names_;
};

std::string label_of(const std::string& method, const std::string& group) {
  const std::string name = method == "gnc"     ? "guess and check"
                           : method == "gd"    ? "gradient descent"
                           : method == "prior" ? "prior, by guesses"
                                               : method;
  return group.empty() ? name : fmt::format("{} {}", name, group);
}

// Closed forms of the cells of one line of medians.
struct Closed {
  std::string group;
  int color = 0;  // of the line
  std::vector<telemetry::CurvePoint> prior, theory;
};

bool any_finite(const std::vector<telemetry::CurvePoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const auto& point) { return std::isfinite(point.value); });
}

bool same_curve(const std::vector<telemetry::CurvePoint>& left,
                const std::vector<telemetry::CurvePoint>& right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [](const auto& one, const auto& other) {
        return one.step == other.step &&
               (one.value == other.value || (std::isnan(one.value) && std::isnan(other.value)));
      });
}

// One curve in a colour of its own where all groups share it; else one per group, in the colour of
// its medians.
void add_closed(std::vector<PlotSeries>& series, const std::string& label, int own_color,
                bool markers, const std::vector<Closed>& all,
                std::vector<telemetry::CurvePoint> Closed::*points) {
  if (all.empty()) return;
  const bool shared = std::all_of(all.begin(), all.end(), [&](const Closed& one) {
    return same_curve(one.*points, all.front().*points);
  });
  for (const Closed& one : all) {
    if (!any_finite(one.*points)) continue;
    series.push_back({.label = shared ? label : fmt::format("{} {}", label, one.group),
                      .points = one.*points,
                      .color = shared ? own_color : one.color,
                      .markers = !shared && markers,
                      .dashed = true});
    if (shared) return;
  }
}

std::vector<PlotSeries> median_series(const std::vector<SeedSummary>& summaries,
                                      const AxisPlaces& places) {
  std::vector<PlotSeries> series;
  std::map<std::string, size_t> known;
  std::vector<Closed> closed;
  for (const SeedSummary& one : summaries) {
    const std::string label = label_of(one.method, one.group);
    const auto [place, added] = known.try_emplace(label, series.size());
    if (added)
      series.push_back({.label = label, .color = static_cast<int>(series.size()), .markers = true});
    PlotSeries& line = series[place->second];
    const int64_t step = places.step(one.axis);
    line.points.push_back({step, one.median});
    line.band.push_back({step, one.low, one.high});
    // They do not depend on the method.
    if (one.method != summaries.front().method) continue;
    if (closed.empty() || closed.back().group != one.group) {
      const auto same = std::find_if(closed.begin(), closed.end(),
                                     [&](const Closed& each) { return each.group == one.group; });
      if (same == closed.end()) {
        closed.push_back({.group = one.group, .color = line.color, .prior = {}, .theory = {}});
      } else {
        std::rotate(same, same + 1, closed.end());
      }
    }
    closed.back().prior.push_back({step, one.prior_mean});
    closed.back().theory.push_back({step, one.theory});
  }
  const int colors = static_cast<int>(series.size());
  // Dots distinguish the two curves of one colour.
  add_closed(series, "prior mean", colors, true, closed, &Closed::prior);
  add_closed(series, "theory", colors + 1, false, closed, &Closed::theory);
  return series;
}

std::vector<PlotSeries> seed_series(const SweepResults& results, const std::string& axis,
                                    const AxisPlaces& places) {
  std::vector<PlotSeries> series;
  std::map<std::string, size_t> known;
  std::map<std::string, int> colors;
  const std::vector<std::string> groups = groups_of_cells(results, axis);
  const std::vector<std::string> values = axis_of_cells(results, axis);
  for (size_t at = 0; at < results.cells.size(); ++at) {
    const CellResult& cell = results.cells[at];
    const std::string name = label_of(cell.cell.method, groups[at]);
    const std::string label = fmt::format("{} seed {}", name, cell.cell.seed);
    const auto [color, new_name] = colors.try_emplace(name, static_cast<int>(colors.size()));
    const auto [place, added] = known.try_emplace(label, series.size());
    // One name per method: a legend of a hundred seeds would hide what it explains.
    if (added)
      series.push_back({.label = new_name ? name + ", a line per seed" : "",
                        .color = color->second,
                        .markers = true});
    series[place->second].points.push_back({places.step(values[at]), cell.value});
  }
  return series;
}

std::vector<PlotPanel> panels_of(const SweepResults& results, const FigureOptions& options) {
  const std::string axis = axis_name(results);
  const std::vector<SeedSummary> summaries = summarise(results, axis);
  const AxisPlaces places(summaries);
  charts::PlotOptions left;
  left.title = fmt::format("sweep {}: median and quartiles over seeds", results.workload);
  left.subtitle = counts_text(results);
  left.x_label = axis;
  left.x_names = places.names();
  left.y_label = results.workload == "run" ? "value" : "generalisation loss";
  left.width = options.width / 2;
  left.height = options.height;
  left.log_x = places.spans_octaves();
  left.log_y = options.log_y;
  left.clear_legend = true;
  left.smoothing = 0;
  charts::PlotOptions right = left;
  right.title = "each seed";
  right.subtitle = "failed, censored and unfinished cells leave gaps";
  right.width = options.width - left.width;
  return {{.options = left, .series = median_series(summaries, places)},
          {.options = right, .series = seed_series(results, axis, places)}};
}

}  // namespace

std::string figure_svg(const SweepResults& results, const FigureOptions& options) {
  return charts::panels_svg(panels_of(results, options));
}

}  // namespace convoy::sweep
