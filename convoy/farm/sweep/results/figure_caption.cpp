// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/figure_caption.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "convoy/core/base/counted.h"
#include "convoy/core/charts/plot.h"

namespace convoy::sweep {
namespace {

// A range such as "0.02" or "0.01 to 0.02".
std::string range_text(const std::set<double>& values) {
  std::string text = charts::number_label(*values.begin());
  if (values.size() > 1) text += " to " + charts::number_label(*values.rbegin());
  return text;
}

// The sentence about the seeds of the figure. It describes the first kind of panel that is drawn.
std::string seeds_text(const SweepResults& results, const std::vector<FigurePanel>& panels) {
  if (const auto seed = only_seed(results)) return fmt::format("Seed {} alone", *seed);
  std::set<int64_t> seeds;
  for (const CellResult& cell : results.cells) seeds.insert(cell.cell.seed);
  const std::string count = counted(static_cast<int64_t>(seeds.size()), "seed");
  if (shows(panels, FigurePanel::Median)) return "Medians over " + count;
  if (shows(panels, FigurePanel::Seeds)) return "Each of " + count;
  return "Shares of the guesses of " + count + " together, and of each";
}

std::string guesses_text(const SweepResults& results) {
  std::set<double> thresholds, guesses;
  AxesOfCells known;
  for (const CellResult& cell : results.cells) {
    if (!checks_guesses(cell)) continue;
    const auto& parameters = known.of(cell.cell);
    for (const char* const name : {"gnc_eps_train", "eps_train"})
      if (const auto found = parameters.find(name); found != parameters.end())
        thresholds.insert(found->second.get<double>());
    if (cell.state == CellState::Value || cell.state == CellState::Censored)
      guesses.insert(static_cast<double>(cell.tally.guesses));
  }
  std::string text;
  if (!thresholds.empty())
    text += "; a guess passes with a training loss below " + range_text(thresholds);
  if (!guesses.empty()) text += fmt::format("; {} guesses a cell", range_text(guesses));
  return text;
}

std::string states_text(const SweepResults& results) {
  const auto counts = results.counts();
  const bool guesses = std::any_of(results.cells.begin(), results.cells.end(), checks_guesses);
  std::string text =
      fmt::format("; {}: {}", counted(static_cast<int64_t>(results.cells.size()), "cell"),
                  counted(counts.at(CellState::Value), "value"));
  const int64_t censored = counts.at(CellState::Censored);
  if (guesses || censored > 0)
    text += fmt::format(", {} censored{}", censored,
                        !guesses       ? " (pruned)"
                        : censored > 0 ? " (no guess passed)"
                                       : "");
  text += fmt::format(", {} failed", counts.at(CellState::Failed));
  if (const int64_t count = counts.at(CellState::Partial); count > 0)
    text += fmt::format(", {} unfinished", count);
  if (const int64_t count = counts.at(CellState::Former); count > 0)
    text += fmt::format(", {} to be computed again", count);
  return text;
}

bool have_means(const FigureLines& figure, const std::vector<FigureMeasure>& measures) {
  if (measures.size() > 1 || !measures.front().is_value()) return false;
  for (const FigureLine& line : figure.lines)
    for (const LinePlace& place : line.places)
      for (const CellResult* const cell : place.cells)
        if (std::isfinite(cell->low())) return true;
  return false;
}

std::string band_text(const SweepResults& results, const FigureLines& figure,
                      const std::vector<FigureMeasure>& measures,
                      const std::vector<FigurePanel>& panels, FigureBand band) {
  const bool of_means = band == FigureBand::Interval && have_means(figure, measures);
  const bool medians = shows(panels, FigurePanel::Median),
             seeds = shows(panels, FigurePanel::Seeds);
  if (only_seed(results) || !medians)
    return of_means && (medians || seeds) ? fmt::format(" with 95 % intervals of {} means",
                                                        only_seed(results) ? "its" : "their")
                                          : "";
  const std::string of_seeds = of_means && seeds ? ", seeds with those of their means" : "";
  if (!has_band(figure, measures.front(), band))
    return of_seeds.empty() ? "" : ", seeds with 95 % intervals of their means";
  if (band == FigureBand::Quartiles) return " with quartiles";
  bool any_without = false;
  for (const FigureLine& line : figure.lines)
    for (const LinePlace& place : line.places) {
      const std::vector<double> sorted = sorted_measures(place.cells, measures.front());
      any_without =
          any_without || (!sorted.empty() && !std::isfinite(median_interval(sorted).first));
    }
  return fmt::format(" with 95 % intervals of the median by order statistics{}{}",
                     any_without ? ", which need six values" : "", of_seeds);
}

}  // namespace

bool shows(const std::vector<FigurePanel>& panels, FigurePanel panel) {
  return std::find(panels.begin(), panels.end(), panel) != panels.end();
}

bool checks_guesses(const CellResult& cell) {
  return cell.planned_guesses > 0 && cell.cell.method != "prior";
}

std::string measure_label(const SweepResults& results, const FigureMeasure& measure) {
  switch (measure.kind) {
    case FigureMeasure::Kind::TrainLoss:
      return "training loss";
    case FigureMeasure::Kind::AcceptedShare:
      return "share of guesses that passed";
    case FigureMeasure::Kind::Seconds:
      return "seconds of computing";
    case FigureMeasure::Kind::Result:
      break;
  }
  return is_of_programs(results) ? results.metrics[measure.result] : "generalisation loss";
}

std::optional<int64_t> only_seed(const SweepResults& results) {
  std::optional<int64_t> seed;
  for (const CellResult& cell : results.cells) {
    if (seed && *seed != cell.cell.seed) return std::nullopt;
    seed = cell.cell.seed;
  }
  return seed;
}

bool has_band(const FigureLines& figure, const FigureMeasure& measure, FigureBand band) {
  if (band != FigureBand::Interval) return band == FigureBand::Quartiles;
  for (const FigureLine& line : figure.lines)
    for (const LinePlace& place : line.places)
      if (std::isfinite(median_interval(sorted_measures(place.cells, measure)).first)) return true;
  return false;
}

std::string figure_caption(const SweepResults& results, const FigureLines& figure,
                           const std::vector<FigureMeasure>& measures,
                           const std::vector<FigurePanel>& panels, FigureBand band) {
  std::string text = fmt::format("{}{}{}{}", seeds_text(results, panels),
                                 band_text(results, figure, measures, panels, band),
                                 guesses_text(results), states_text(results));
  if (figure.cells_without_axis > 0)
    text += fmt::format("; {} without {} left out", counted(figure.cells_without_axis, "cell"),
                        figure.axis);
  return text + ".";
}

}  // namespace convoy::sweep
