// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/sweep/sweep_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/time_text.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/results/grid_text.h"
#include "convoy/farm/sweep/results/summary.h"
#include "convoy/farm/sweep/runner/sweep_settings.h"

namespace convoy::apps {
namespace {

using nlohmann::ordered_json;
using sweep::SweepResults;

// The time in UTC; "-" for 0.
std::string time_text(int64_t milliseconds) {
  return milliseconds == 0 ? "-" : utc_time_text(milliseconds / 1000);
}

// Adds the grid, the counts of cells by state, and the command of the cells if they have one.
void add_content(ordered_json& row, const SweepResults& results) {
  row["grid"] = sweep::grid_json(results);
  row["states"] = ordered_json::object();
  for (const auto& [state, count] : results.counts())
    if (count > 0) row["states"][sweep::cell_state_word(state)] = count;
  row["content"] = sweep::grid_text(results);
  row["counts"] = sweep::counts_text(results);
  const auto parameters =
      nlohmann::json::parse(results.cells.front().cell.parameters.str(), nullptr, false);
  if (results.workload == "run" && parameters.contains("command"))
    row["command"] = sweep::shell_text(parameters["command"].get<std::vector<std::string>>());
  else if (sweep::is_of_programs(results))
    row["command"] = nullptr;
}

// The settings of the cells that are not in the grid.
ordered_json settings_json(jobs::JobStore& store, const sweep::SweepName& name,
                           const ordered_json& grid) {
  ordered_json settings = ordered_json::object();
  for (const auto& [key, values] : sweep::settings_of(store, sweep::stored_sweep(store, name)))
    if (!grid.contains(key))
      for (const nlohmann::json& value : values) settings[key].push_back(ordered_json(value));
  return settings;
}

ordered_json list_row(jobs::JobStore& store, const sweep::SweepName& one) {
  // A sweep of more cells is not read for the list. Reading this many takes about a second.
  constexpr int64_t kMostReadCells = 200'000;
  ordered_json row = {{"name", one.name},
                      {"workload", one.workload},
                      {"version", one.version},
                      {"cells", sweep::count_cells(store, sweep::stored_sweep(store, one))},
                      {"created", nullptr},
                      {"last_run", nullptr},
                      {"command", "convoy sweep " + one.workload},
                      {"settings", nullptr},
                      {"grid", nullptr},
                      {"states", nullptr},
                      {"problem", nullptr}};
  if (one.created_ms != 0) row["created"] = time_text(one.created_ms);
  if (one.last_run_ms != 0) row["last_run"] = time_text(one.last_run_ms);
  SweepResults results;
  std::string problem = one.problem;
  if (problem.empty() && row["cells"] <= kMostReadCells)
    problem = read_if_possible(store, one, results);
  if (!problem.empty()) row["problem"] = problem;
  if (!problem.empty() || results.cells.empty()) return row;
  add_content(row, results);
  row["settings"] = settings_json(store, one, row["grid"]);
  return row;
}

// The settings of `row` that have another value in some other sweep of the same workload.
ordered_json own_settings(const ordered_json& row, const ordered_json& rows) {
  ordered_json own = ordered_json::object();
  if (row["settings"].is_null()) return own;
  for (const auto& [name, values] : row["settings"].items()) {
    const bool differs = std::any_of(
        rows.begin(), rows.end(), [&, &key = name, &mine = values](const ordered_json& other) {
          if (other["workload"] != row["workload"] || other["settings"].is_null()) return false;
          return !other["settings"].contains(key) || other["settings"][key] != mine;
        });
    if (differs) own[name] = values;
  }
  return own;
}

void print_row(const ordered_json& row, const ordered_json& rows) {
  const auto text_of = [](const ordered_json& value) {
    return value.is_null() ? "-" : sweep::escaped_line(value.get<std::string>());
  };
  fmt::print("{}  {}\n    {}", text_of(row["name"]),
             row.contains("counts") ? row["counts"].get<std::string>()
                                    : counted(row["cells"].get<int64_t>(), "cell"),
             text_of(row["command"]));
  if (const ordered_json own = own_settings(row, rows); !own.empty())
    fmt::print("; {}", sweep::escaped_line(sweep::named_values_text(own)));
  fmt::print("\n");
  if (row.contains("content")) fmt::print("    {}\n", text_of(row["content"]));
  fmt::print("    last run {}, version {}\n", text_of(row["last_run"]), text_of(row["version"]));
}

}  // namespace

std::string read_if_possible(jobs::JobStore& store, const sweep::SweepName& name,
                             SweepResults& results) {
  try {
    results = sweep::read_sweep(store, name, experiments::workload_of_version);
    return "";
  } catch (const ConfigError& error) {
    return error.sentence();
  } catch (const DataError& error) {
    return error.sentence();
  }
}

int list_sweeps(const Context& context, jobs::JobStore& store) {
  ordered_json rows = ordered_json::array();
  for (const sweep::SweepName& one : sweep::stored_sweeps(store))
    rows.push_back(list_row(store, one));
  if (context.common.json) {
    fmt::print("{}\n", rows.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  // Each sweep has separate lines, because a table of all values would be too wide for a terminal.
  for (const auto& row : rows) print_row(row, rows);
  for (const auto& row : rows)
    if (!row["problem"].is_null())
      context.log().warning(fmt::format("sweep {} cannot be read: {}",
                                        sweep::escaped_line(row["name"].get<std::string>()),
                                        sweep::escaped_line(row["problem"].get<std::string>())));
  return 0;
}

}  // namespace convoy::apps
