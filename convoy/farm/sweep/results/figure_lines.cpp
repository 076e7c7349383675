// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/figure_lines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

// The cells of programs have no method, so their lines have only the values in their names.
std::string line_label(const std::string& method, const std::string& group, bool of_programs) {
  if (of_programs) return group;
  const std::string name = method == "gnc"     ? "guess and check"
                           : method == "gd"    ? "gradient descent"
                           : method == "prior" ? "prior, by guesses"
                                               : method;
  return group.empty() ? name : fmt::format("{}, {}", name, group);
}

// Fills `values` or `names` of the figure, and returns the place of each text.
std::map<std::string, double> place_texts(FigureLines& figure,
                                          const std::vector<std::string>& texts) {
  std::map<std::string, double> places;
  std::vector<std::string> order;
  for (const std::string& text : texts)
    if ((!text.empty() || figure.axis.empty()) && places.try_emplace(text, 0).second)
      order.push_back(text);
  const bool numbers = std::all_of(order.begin(), order.end(), [](const std::string& text) {
    return number_in(text).has_value();
  });
  for (const std::string& text : order) {
    if (numbers) {
      places[text] = *number_in(text);
      figure.values.push_back(places[text]);
    } else {
      places[text] = static_cast<double>(figure.names.size());
      figure.names.push_back(text);
    }
  }
  std::sort(figure.values.begin(), figure.values.end());
  figure.values.erase(std::unique(figure.values.begin(), figure.values.end()), figure.values.end());
  return places;
}

// True if the values change with the axis: numbers never fall or never rise, and no text comes back
// after another text.
bool go_with_axis(const std::vector<std::string>& values) {
  const bool are_numbers = std::all_of(values.begin(), values.end(), [](const std::string& text) {
    return number_in(text).has_value();
  });
  bool rises = true, falls = true;
  std::set<std::string> seen;
  for (size_t at = 0; at < values.size(); ++at) {
    if (at > 0 && values[at] == values[at - 1]) continue;
    if (!are_numbers && !seen.insert(values[at]).second) return false;
    if (!are_numbers || at == 0) continue;
    rises = rises && *number_in(values[at]) >= *number_in(values[at - 1]);
    falls = falls && *number_in(values[at]) <= *number_in(values[at - 1]);
  }
  return rises || falls;
}

// True if the line is a series: the other values of its cells change together with the axis, like
// values of --zip.
bool is_series(const FigureLine& line, const std::set<std::string>& names) {
  std::map<std::string, std::vector<std::string>> values;
  for (const LinePlace& place : line.places) {
    const auto axes = axes_of(place.cells.front()->cell);
    for (const std::string& name : names) {
      const auto found = axes.find(name);
      values[name].push_back(found == axes.end() ? "" : parameter_text(found->second));
    }
  }
  return std::all_of(values.begin(), values.end(),
                     [](const auto& one) { return go_with_axis(one.second); });
}

// Joins all lines into one line with all of their places; several places may have the same x.
void join_lines(FigureLines& figure) {
  FigureLine joined;
  for (FigureLine& line : figure.lines)
    std::move(line.places.begin(), line.places.end(), std::back_inserter(joined.places));
  std::stable_sort(joined.places.begin(), joined.places.end(),
                   [](const LinePlace& left, const LinePlace& right) { return left.x < right.x; });
  figure.lines = {std::move(joined)};
}

// Detects samples of a space of several names: if most lines have only one place, the places are
// single points and not lines.
void find_scattered(FigureLines& figure, const SweepResults& results,
                    const std::set<std::string>& grouping) {
  constexpr size_t kFewestLines = 3;
  const size_t places = figure.values.size() + figure.names.size();
  const auto alone =
      static_cast<size_t>(std::count_if(figure.lines.begin(), figure.lines.end(),
                                        [](const auto& line) { return line.places.size() == 1; }));
  if (places > 1 && figure.lines.size() >= kFewestLines && 2 * alone > figure.lines.size()) {
    figure.scattered = true;
    join_lines(figure);
    return;
  }
  std::set<std::string> names = shown_names(results, figure.axis);
  for (const std::string& name : grouping) names.erase(name);
  figure.scattered = std::any_of(figure.lines.begin(), figure.lines.end(),
                                 [&](const auto& line) { return !is_series(line, names); });
}

}  // namespace

FigureLines figure_lines(const SweepResults& results, const std::string& axis) {
  FigureLines figure;
  figure.axis = axis.empty() ? axis_name(results) : axis;
  const std::vector<std::string> texts = axis_of_cells(results, figure.axis);
  const std::set<std::string> grouping = grouping_names(results, figure.axis);
  const std::vector<std::string> groups = groups_of_cells(results, grouping);
  const std::map<std::string, double> places = place_texts(figure, texts);
  const bool of_programs = is_of_programs(results);
  if (!axis.empty() && places.empty())
    throw ConfigError(fmt::format("--x: no cell has a parameter `{}`", axis),
                      {.hint = "name a parameter of the sweep, or leave --x out"});
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::vector<std::map<double, std::vector<const CellResult*>>> cells;
  for (size_t at = 0; at < results.cells.size(); ++at) {
    const CellResult& cell = results.cells[at];
    const auto place = places.find(texts[at]);
    if (place == places.end()) {
      ++figure.cells_without_axis;
      continue;
    }
    const auto [line, added] =
        known.try_emplace({cell.cell.method, groups[at]}, figure.lines.size());
    if (added) {
      figure.lines.push_back(
          {.label = line_label(cell.cell.method, groups[at], of_programs), .group = groups[at]});
      cells.emplace_back();
    }
    cells[line->second][place->second].push_back(&cell);
  }
  for (size_t line = 0; line < cells.size(); ++line)
    for (auto& [x, of_place] : cells[line])
      figure.lines[line].places.push_back({.x = x, .cells = std::move(of_place)});
  if (of_programs) find_scattered(figure, results, grouping);
  return figure;
}

std::vector<FigureMeasure> figure_measures(const SweepResults& results, const std::string& name) {
  using Kind = FigureMeasure::Kind;
  std::vector<FigureMeasure> measures;
  for (size_t at = 0; at < results.metrics.size(); ++at)
    if (name.empty() || name == results.metrics[at]) measures.push_back({.result = at});
  if (!measures.empty()) return measures;
  static const std::map<std::string, FigureMeasure> kOthers = {
      {"value", {}},
      {"train_loss", {.kind = Kind::TrainLoss}},
      {"accepted_share", {.kind = Kind::AcceptedShare}},
      {"seconds", {.kind = Kind::Seconds}}};
  const auto found = kOthers.find(name);
  if (found == kOthers.end())
    throw ConfigError(fmt::format("--y: no cell has a result `{}`", name),
                      {.hint = fmt::format("{}, train_loss, accepted_share or seconds",
                                           fmt::join(results.metrics, ", "))});
  return {found->second};
}

double measure_of(const CellResult& cell, const FigureMeasure& measure) {
  const bool is_done = cell.state == CellState::Value || cell.state == CellState::Censored;
  switch (measure.kind) {
    case FigureMeasure::Kind::AcceptedShare:
      return is_done ? cell.accepted_share() : std::nan("");
    case FigureMeasure::Kind::Seconds:
      return is_done ? cell.seconds : std::nan("");
    case FigureMeasure::Kind::TrainLoss:
      return cell.state == CellState::Value ? cell.outcome.train_loss : std::nan("");
    case FigureMeasure::Kind::Result:
      break;
  }
  return cell.state == CellState::Value ? cell.metric(measure.result) : std::nan("");
}

std::vector<double> sorted_measures(const std::vector<const CellResult*>& cells,
                                    const FigureMeasure& measure) {
  std::vector<double> values;
  for (const CellResult* const cell : cells)
    if (const double value = measure_of(*cell, measure); std::isfinite(value))
      values.push_back(value);
  std::sort(values.begin(), values.end());
  return values;
}

std::pair<double, double> median_interval(const std::vector<double>& sorted) {
  constexpr double kOutside = 0.025;  // probability beyond either end
  const auto count = static_cast<double>(sorted.size());
  // The number of values, out of `count`, that are below the median has a binomial distribution
  // with probability 1/2.
  double below = 0;
  size_t rank = 0;
  for (; rank < sorted.size(); ++rank) {
    const auto place = static_cast<double>(rank);
    below += std::exp(std::lgamma(count + 1) - std::lgamma(place + 1) -
                      std::lgamma(count - place + 1) - count * std::log(2.0));
    if (below > kOutside) break;
  }
  if (rank == 0) return {std::nan(""), std::nan("")};
  return {sorted[rank - 1], sorted[sorted.size() - rank]};
}

}  // namespace convoy::sweep
