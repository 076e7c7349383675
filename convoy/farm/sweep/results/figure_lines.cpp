// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/figure_lines.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/figure.h"
#include "convoy/farm/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

std::string line_label(const std::string& method, const std::string& group) {
  const std::string name = method == "gnc"     ? "guess and check"
                           : method == "gd"    ? "gradient descent"
                           : method == "prior" ? "prior, by guesses"
                                               : method;
  return group.empty() ? name : fmt::format("{} {}", name, group);
}

// Fills values or names, and returns the place of each text.
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

}  // namespace

FigureLines figure_lines(const SweepResults& results, const std::string& axis) {
  FigureLines figure;
  figure.axis = axis.empty() ? axis_name(results) : axis;
  const std::vector<std::string> texts = axis_of_cells(results, figure.axis);
  const std::vector<std::string> groups = groups_of_cells(results, figure.axis);
  const std::map<std::string, double> places = place_texts(figure, texts);
  CONVOY_CHECK(axis.empty() || !places.empty(), ConfigError, "--x: no cell has a parameter `{}`",
               axis);
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
          {.label = line_label(cell.cell.method, groups[at]), .group = groups[at]});
      cells.emplace_back();
    }
    cells[line->second][place->second].push_back(&cell);
  }
  for (size_t line = 0; line < cells.size(); ++line)
    for (auto& [x, of_place] : cells[line])
      figure.lines[line].places.push_back({.x = x, .cells = std::move(of_place)});
  return figure;
}

const std::vector<std::string>& figure_measures() {
  static const std::vector<std::string> words = {"value", "train_loss", "accepted_share",
                                                 "seconds"};
  return words;
}

double measure_of(const CellResult& cell, const std::string& measure) {
  const bool is_done = cell.state == CellState::Value || cell.state == CellState::Censored;
  if (measure == "accepted_share") return is_done ? cell.accepted_share() : std::nan("");
  if (measure == "seconds") return is_done ? cell.seconds : std::nan("");
  if (cell.state != CellState::Value) return std::nan("");
  return measure == "train_loss" ? cell.descent.train_loss : cell.value;
}

std::vector<double> sorted_measures(const std::vector<const CellResult*>& cells,
                                    const std::string& measure) {
  std::vector<double> values;
  for (const CellResult* const cell : cells)
    if (const double value = measure_of(*cell, measure); std::isfinite(value))
      values.push_back(value);
  std::sort(values.begin(), values.end());
  return values;
}

std::pair<double, double> median_interval(const std::vector<double>& sorted) {
  constexpr double kOutside = 0.025;  // on either side
  const auto count = static_cast<double>(sorted.size());
  // How many of `count` values are below the median is binomial with probability 1/2.
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
