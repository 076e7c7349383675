// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/tidy_table.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/csv_cell.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::sweep {
namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

// Programs write to stderr in any encoding, so invalid bytes are replaced.
ordered_json readable_or_null(const std::string& bytes) {
  if (bytes.empty()) return nullptr;
  return ordered_json::parse(
      ordered_json(bytes).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::set<std::string> parameter_names(const SweepResults& results) {
  std::set<std::string> names;
  AxesOfCells known;
  for (const CellResult& cell : results.cells)
    for (const auto& [name, value] : known.of(cell.cell)) names.insert(name);
  return names;
}

void add_results(ordered_json& row, const ordered_json& after, const CellResult& cell,
                 const std::vector<std::string>& metrics) {
  for (size_t metric = 0; metric < metrics.size(); ++metric) {
    const std::string& name = metrics[metric];
    // The first metric is already the column `value`.
    if (metric == 0 && (name == "value" || name == "seconds")) continue;
    const bool is_taken = row.contains(name) || after.contains(name);
    row[is_taken ? "result_" + name : name] = number_or_null(cell.metric(metric));
  }
}

void add_guesses(ordered_json& row, const CellResult& cell) {
  const bool guessed = cell.planned_guesses > 0;
  row["standard_error"] = number_or_null(cell.standard_error());
  row["low"] = number_or_null(cell.low());
  row["high"] = number_or_null(cell.high());
  row["guesses"] = guessed ? ordered_json(cell.tally.guesses) : ordered_json(nullptr);
  row["accepted"] = guessed ? ordered_json(cell.tally.accepted) : ordered_json(nullptr);
  row["non_finite"] = guessed ? ordered_json(cell.tally.non_finite) : ordered_json(nullptr);
  row["accepted_share"] = number_or_null(cell.accepted_share());
  row["prior_mean"] = number_or_null(cell.reference.prior_mean);
  row["theory"] = number_or_null(cell.reference.curve);
  row["asymptote"] = number_or_null(cell.reference.asymptote);
  row["theory_acceptance"] = number_or_null(cell.reference.acceptance);
  row["train_loss"] = number_or_null(cell.outcome.train_loss);
  row["steps"] = cell.outcome.steps > 0 ? ordered_json(cell.outcome.steps) : ordered_json(nullptr);
}

// Adds folder and environment of a command; null if a cell has none.
void add_circumstances(ordered_json& row, const CellResult& cell) {
  const auto record = nlohmann::json::parse(cell.program.str(), nullptr, false);
  const bool known = record.is_object() && record.contains("folder");
  row["folder"] = known ? ordered_json(record["folder"]) : ordered_json(nullptr);
  row["environment"] = known ? ordered_json(record["environment"].dump()) : ordered_json(nullptr);
}

void add_effort(ordered_json& row, const CellResult& cell, bool of_programs) {
  const bool failed = cell.state == CellState::Failed;
  row["attempts"] = cell.attempts > 0 ? ordered_json(cell.attempts) : ordered_json(nullptr);
  row["failure_kind"] = text_or_null(failed ? cell.failure->kind : "");
  row["failure_message"] = text_or_null(failed ? cell.failure->message : "");
  row["failure_signal"] = failed && cell.failure->signal != 0 ? ordered_json(cell.failure->signal)
                                                              : ordered_json(nullptr);
  row["failure_stderr"] = readable_or_null(failed ? cell.failure->stderr_tail : "");
  row["seconds"] = cell.seconds > 0 ? ordered_json(cell.seconds) : ordered_json(nullptr);
  if (!of_programs)
    row["guesses_per_second"] =
        cell.seconds > 0 && cell.tally.guesses > 0
            ? ordered_json(static_cast<double>(cell.tally.guesses) / cell.seconds)
            : ordered_json(nullptr);
  row["device"] = text_or_null(cell.device);
}

std::string field_text(const ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return csv_cell(value.get<std::string>());
  if (value.is_number_float()) return number_text(value.get<double>());
  return csv_cell(value.dump());
}

}  // namespace

ordered_json tidy_json(const SweepResults& results) {
  const std::set<std::string> names = parameter_names(results);
  const bool of_programs = is_of_programs(results);
  ordered_json rows = ordered_json::array();
  AxesOfCells known;
  for (const CellResult& cell : results.cells) {
    ordered_json row, after;  // after: the columns that follow the results
    row["workload"] = results.workload;
    row["version"] = results.version;
    row["method"] = cell.cell.method;
    row["seed"] = cell.cell.seed;
    if (!of_programs) add_guesses(after, cell);
    add_effort(after, cell, of_programs);
    if (results.workload == "run") add_circumstances(after, cell);
    const auto& axes = known.of(cell.cell);
    for (const std::string& name : names) {
      const auto found = axes.find(name);
      // A grid may use any name. The columns that Convoy adds keep their names.
      const bool is_taken =
          row.contains(name) || after.contains(name) || name == "state" || name == "value";
      row[is_taken ? "parameter_" + name : name] =
          found == axes.end() ? ordered_json(nullptr) : ordered_json(found->second);
    }
    row["state"] = cell_state_word(cell.state);
    row["value"] = number_or_null(cell.value);
    if (of_programs) add_results(row, after, cell, results.metrics);
    row.update(after);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string tidy_json_text(const SweepResults& results) {
  return tidy_json(results).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::vector<std::string> tidy_columns(const SweepResults& results) {
  // One row for each set of parameters contains all column names.
  SweepResults few{.workload = results.workload,
                   .version = results.version,
                   .cells = {},
                   .metrics = results.metrics};
  std::set<std::string> seen;
  for (const CellResult& cell : results.cells)
    if (seen.insert(cell.cell.parameters).second) few.cells.push_back(cell);
  if (few.cells.empty()) few.cells.emplace_back();
  const ordered_json rows = tidy_json(few);
  std::vector<std::string> columns;
  for (const auto& [name, value] : rows[0].items()) columns.push_back(name);
  return columns;
}

std::string tidy_csv(const SweepResults& results) {
  std::string text;
  for (const std::string& column : tidy_columns(results))
    text += (text.empty() ? "" : ",") + csv_cell(column);
  text += "\n";
  for (const ordered_json& row : tidy_json(results)) {
    bool first = true;
    for (const auto& [name, value] : row.items()) {
      if (!first) text += ',';
      text += field_text(value);
      first = false;
    }
    text += "\n";
  }
  return text;
}

}  // namespace convoy::sweep
