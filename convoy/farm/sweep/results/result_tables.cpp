// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/result_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/farm/sweep/results/fitted_table.h"
#include "convoy/farm/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

using Rows = TableRows;

constexpr int64_t kMostListed = 10;  // most cells of one state that are listed

// Removes the columns in which no row has a value: programs, for example, have no prior and accept
// no guesses.
void drop_empty_columns(Rows& rows) {
  for (size_t column = rows.front().size(); column-- > 0;) {
    const bool is_empty = std::all_of(rows.begin() + 1, rows.end(), [column](const auto& row) {
      return row[column] == "-" || row[column].empty();
    });
    if (!is_empty) continue;
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
}

std::string table_of(Rows rows, const TableFit& fit) {
  for (auto& row : rows)
    for (std::string& text : row) text = escaped_line(text);
  if (rows.size() > 1) drop_empty_columns(rows);
  return fitted_table(std::move(rows), fit);
}

std::string short_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.5g}", value) : "-";
}

std::string share_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.3e}", value) : "-";
}

std::string range_text(double low, double high) {
  return std::isfinite(low) ? fmt::format("{:.5g} .. {:.5g}", low, high) : "-";
}

std::string value_text(const CellResult& cell, size_t metric) {
  switch (cell.state) {
    case CellState::Value:
    case CellState::Former:
      return short_number(cell.metric(metric));
    case CellState::Censored:
      return metric > 0 ? "-" : cell.pruned ? "pruned" : "censored";
    case CellState::Failed:
      return metric > 0 ? "-" : "FAILED";
    case CellState::Partial:
      break;
  }
  return metric > 0 ? "-" : "unfinished";
}

std::string remark(const CellResult& cell) {
  switch (cell.state) {
    case CellState::Censored:
      if (cell.pruned) return cell.pruned->text();
      return fmt::format("0 of {} guesses passed: P < {:.2e} at 95 %", cell.tally.guesses,
                         cell.share_bound());
    case CellState::Failed:
      return fmt::format("{} (attempt {}){}", failure_text(*cell.failure), cell.failure->attempt,
                         std::isfinite(cell.former_value)
                             ? fmt::format("; it was {} before", short_number(cell.former_value))
                             : "");
    case CellState::Former:
      return fmt::format("to be computed again; this is its value from {}",
                         clock_text(cell.finished_ms, cell.finished_ms));
    case CellState::Partial:
      return cell.planned_guesses > 0
                 ? fmt::format("{} of {} guesses", cell.tally.guesses, cell.planned_guesses)
                 : "";
    case CellState::Value:
      break;
  }
  return cell.tally.non_finite > 0
             ? fmt::format("not a finite number: {}",
                           counted(cell.tally.non_finite, "accepted loss", "accepted losses"))
             : "";
}

// The columns that name a row: the method if there are several, the axis, and every other parameter
// that separates rows.
struct Naming {
  bool method = true;
  std::vector<std::string> parameters;

  Naming(const SweepResults& results, const std::string& axis) {
    method = !is_of_programs(results);
    if (!axis.empty()) parameters.push_back(axis);
    for (const std::string& name : shown_names(results, axis)) parameters.push_back(name);
  }
  std::vector<std::string> heading() const {
    std::vector<std::string> row;
    if (method) row.emplace_back("METHOD");
    row.insert(row.end(), parameters.begin(), parameters.end());
    return row;
  }
  template <class TextOf>
  std::vector<std::string> row(const std::string& of_method, const TextOf& text_of) const {
    std::vector<std::string> row;
    if (method) row.push_back(of_method);
    for (const std::string& name : parameters) row.push_back(text_of(name));
    return row;
  }
  size_t count() const { return parameters.size() + (method ? 1 : 0); }
};

Rows summary_rows(const SweepResults& results, const std::string& axis, const Naming& naming) {
  const std::vector<SeedSummary> summaries = summarise(results, axis);
  // With one seed the value is no median, and the number of cells tells nothing.
  const bool single = std::all_of(summaries.begin(), summaries.end(),
                                  [](const SeedSummary& one) { return one.all() == 1; });
  Rows rows = {naming.heading()};
  for (const std::string& metric : results.metrics) {
    rows[0].push_back(single ? metric : metric + " MEDIAN");
    rows[0].emplace_back("QUARTILES");
  }
  for (const char* const heading : {"PRIOR", "THEORY", "ACCEPTED", "CELLS"})
    rows[0].emplace_back(heading);
  for (const SeedSummary& one : summaries) {
    std::vector<std::string> row = naming.row(one.method, [&](const std::string& name) {
      return name == axis ? one.axis : one.others.contains(name) ? one.others.at(name) : "";
    });
    for (const SeedSummary::Spread& spread : one.spreads()) {
      row.push_back(short_number(spread.median));
      row.push_back(single ? "-" : range_text(spread.low, spread.high));
    }
    row.push_back(short_number(one.prior_mean));
    row.push_back(short_number(one.theory));
    row.push_back(share_text(one.accepted_share));
    row.push_back(single && one.values == 1 ? "" : one.counts_text());
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows cell_rows(const SweepResults& results, const Naming& naming, bool all) {
  Rows rows = {naming.heading()};
  rows[0].emplace_back("SEED");
  rows[0].insert(rows[0].end(), results.metrics.begin(), results.metrics.end());
  for (const char* const heading : {"95 % INTERVAL", "ACCEPTED", "GUESSES", "REMARK"})
    rows[0].emplace_back(heading);
  AxesOfCells known;
  std::map<CellState, int64_t> listed;
  for (const CellResult& cell : results.cells) {
    if (!all && (cell.state == CellState::Value || ++listed[cell.state] > kMostListed)) continue;
    const auto& axes = known.of(cell.cell);
    std::vector<std::string> row = naming.row(cell.cell.method, [&](const std::string& name) {
      const auto found = axes.find(name);
      return found == axes.end() ? std::string() : parameter_text(found->second);
    });
    row.push_back(std::to_string(cell.cell.seed));
    for (size_t metric = 0; metric < results.metrics.size(); ++metric)
      row.push_back(value_text(cell, metric));
    const bool guessed = cell.planned_guesses > 0;
    row.push_back(range_text(cell.low(), cell.high()));
    row.push_back(guessed ? std::to_string(cell.tally.accepted) : "-");
    row.push_back(guessed ? std::to_string(cell.tally.guesses) : "-");
    row.push_back(remark(cell));
    rows.push_back(std::move(row));
  }
  return rows;
}

// A text such as "342 censored; the first 10 of them".
std::string left_out_text(const SweepResults& results) {
  std::string text;
  for (const auto& [state, count] : results.counts())
    if (state != CellState::Value && count > kMostListed)
      text += fmt::format("{} {}; the first {} of them\n", count,
                          state == CellState::Partial  ? "unfinished"
                          : state == CellState::Former ? "to be computed again"
                                                       : cell_state_word(state),
                          kMostListed);
  return text;
}

}  // namespace

std::string table_text(const SweepResults& results, const TableOptions& options) {
  const std::string axis = axis_name(results);
  const Naming naming(results, axis);
  TableFit fit{.names = naming.count(), .words = naming.count(), .width = options.width};
  std::string text = table_of(summary_rows(results, axis, naming), fit);
  const Rows cells = cell_rows(results, naming, options.every_cell);
  ++fit.names;  // counts the seed too
  if (cells.size() > 1)
    text += fmt::format("\n{}{}", options.every_cell ? "" : left_out_text(results),
                        table_of(cells, fit));
  return text;
}

const CellResult* best_cell(const SweepResults& results, bool greatest) {
  const CellResult* best = nullptr;
  for (const CellResult& cell : results.cells)
    if (cell.state == CellState::Value &&
        (best == nullptr || (greatest ? cell.value > best->value : cell.value < best->value)))
      best = &cell;
  return best;
}

std::string best_text(const SweepResults& results, const CellResult& best) {
  std::string values;
  for (const auto& [name, value] : axes_of(best.cell))
    values += fmt::format("{}{}={}", values.empty() ? " with " : " ", name, parameter_text(value));
  return escaped_line(fmt::format("{} {}{}, seed {}", results.metrics.front(),
                                  short_number(best.value), values, best.cell.seed));
}

}  // namespace convoy::sweep
