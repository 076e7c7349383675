// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/summary.h"

namespace convoy::page {
namespace {

using nlohmann::json;
using sweep::CellResult;
using sweep::CellState;
using sweep::SweepResults;

constexpr size_t kMostFailures = 200;

json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// All values that cells have, by name. For a command: its grid's names and its other parameters.
std::map<std::string, std::set<json>> parameters_of(const SweepResults& results) {
  std::map<std::string, std::set<json>> values;
  std::set<std::string> seen;
  for (const CellResult& cell : results.cells) {
    if (!seen.insert(cell.cell.parameters).second) continue;
    json all = json::parse(cell.cell.parameters.str(), nullptr, /*allow_exceptions=*/false);
    if (!all.is_object()) all = json::object();
    if (all.contains("values") && all["values"].is_object()) all.erase("values");
    for (const auto& [name, value] : sweep::axes_of(cell.cell)) all[name] = value;
    for (const auto& [name, value] : all.items()) values[name].insert(value);
  }
  return values;
}

json over_seeds(const SweepResults& results, const std::string& axis) {
  json rows = json::array();
  bool grouped = false, theory = false, guesses = false;
  const std::vector<sweep::SeedSummary> summaries = sweep::summarise(results, axis);
  for (const sweep::SeedSummary& one : summaries) {
    grouped = grouped || !one.group.empty();
    theory = theory || std::isfinite(one.theory) || std::isfinite(one.prior_mean);
    guesses = guesses || std::isfinite(one.accepted_share);
  }
  json columns = {"method", axis.empty() ? "value of" : axis};
  if (grouped) columns.push_back("also");
  for (const char* name : {"median", "lower quartile", "upper quartile"}) columns.push_back(name);
  if (theory) columns.insert(columns.end(), {"prior mean", "theory"});
  if (guesses) columns.push_back("accepted share");
  columns.push_back("cells");
  for (const sweep::SeedSummary& one : summaries) {
    const auto as_number = sweep::number_in(one.axis);
    json row = {one.method, as_number ? json(*as_number) : json(one.axis)};
    if (grouped) row.push_back(one.group);
    for (const double value : {one.median, one.low, one.high}) row.push_back(number_or_null(value));
    if (theory) {
      row.push_back(number_or_null(one.prior_mean));
      row.push_back(number_or_null(one.theory));
    }
    if (guesses) row.push_back(number_or_null(one.accepted_share));
    row.push_back(one.counts_text());
    rows.push_back(std::move(row));
  }
  return {{"columns", columns}, {"rows", rows}};
}

json place_of(const CellResult& cell, const std::vector<std::string>& names,
              sweep::AxesOfCells& known) {
  json row = {cell.cell.method, cell.cell.seed};
  const auto& axes = known.of(cell.cell);
  for (const std::string& name : names) {
    const auto found = axes.find(name);
    row.push_back(found == axes.end() ? json(nullptr) : found->second);
  }
  return row;
}

json place_columns(const std::vector<std::string>& names) {
  json columns = {"method", "seed"};
  for (const std::string& name : names) columns.push_back(name);
  return columns;
}

json cell_table(const SweepResults& results, const std::vector<std::string>& names) {
  json columns = place_columns(names), rows = json::array();
  for (const char* name :
       {"state", "value", "low", "high", "guesses", "accepted", "seconds", "attempts", "device"})
    columns.push_back(name);
  sweep::AxesOfCells known;
  for (const CellResult& cell : results.cells) {
    if (rows.size() == kMostShownCells) break;
    json row = place_of(cell, names, known);
    row.push_back(sweep::cell_state_word(cell.state));
    for (const double value : {cell.value, cell.low(), cell.high()})
      row.push_back(number_or_null(value));
    const bool guessed = cell.planned_guesses > 0;
    row.push_back(guessed ? json(cell.tally.guesses) : json(nullptr));
    row.push_back(guessed ? json(cell.tally.accepted) : json(nullptr));
    row.push_back(cell.seconds > 0 ? json(cell.seconds) : json(nullptr));
    row.push_back(cell.attempts > 0 ? json(cell.attempts) : json(nullptr));
    row.push_back(cell.device.str().empty() ? json(nullptr) : json(cell.device.str()));
    rows.push_back(std::move(row));
  }
  return {{"columns", columns}, {"rows", rows}};
}

json failure_table(const SweepResults& results, const std::vector<std::string>& names) {
  json columns = place_columns(names), rows = json::array();
  for (const char* name : {"kind", "reason", "attempts", "end of stderr"}) columns.push_back(name);
  sweep::AxesOfCells known;
  for (const CellResult& cell : results.cells) {
    if (cell.state != CellState::Failed || !cell.failure || rows.size() == kMostFailures) continue;
    json row = place_of(cell, names, known);
    row.push_back(cell.failure->kind);
    row.push_back(cell.failure->message);
    row.push_back(cell.failure->attempt);
    row.push_back(cell.failure->stderr_tail.empty() ? json(nullptr)
                                                    : json(cell.failure->stderr_tail));
    rows.push_back(std::move(row));
  }
  return {{"columns", columns}, {"rows", rows}};
}

}  // namespace

json sweep_report(const SweepResults& results) {
  json settings = json::object(), axes = json::object();
  std::vector<std::string> varying;
  for (const auto& [name, values] : parameters_of(results)) {
    if (values.size() == 1) {
      settings[name] = *values.begin();
      continue;
    }
    axes[name] = values;
    varying.push_back(name);
  }
  return {{"workload", results.workload},
          {"version", results.version},
          {"counts", sweep::counts_text(results)},
          {"settings", settings},
          {"axes", axes},
          {"over_seeds", over_seeds(results, sweep::axis_name(results))},
          {"cells", cell_table(results, varying)},
          {"num_cells", results.cells.size()},
          {"failures", failure_table(results, varying)}};
}

}  // namespace convoy::page
