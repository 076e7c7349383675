// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/function_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/flags.h"
#include "convoy/farm/sweep/command/grid_values.h"
#include "convoy/farm/sweep/results/result_tables.h"
#include "convoy/farm/sweep/runner/sweep_run.h"
#include "convoy/farm/sweep/runner/worker_process.h"
#include "convoy/machine/processes/signals.h"

namespace convoy {
namespace sweep {
namespace {

constexpr std::string_view kWorker = "sweep-worker";

class FunctionWorkload : public Workload {
 public:
  explicit FunctionWorkload(const FunctionSweep& sweep) : sweep_(sweep) {}
  std::string name() const override { return "function:" + sweep_.name; }
  std::string version() const override { return sweep_.version; }
  std::unique_ptr<GuessExperiment> guesses(const Cell&) const override {
    throw ConfigError("a function has no guesses");
  }
  std::vector<CellOutcome> compute(const std::vector<Cell>& cells) const override {
    std::vector<CellOutcome> outcomes;
    for (const Cell& cell : cells) {
      CellOutcome outcome;
      outcome.value = sweep_.value(nlohmann::json::parse(cell.parameters.str()), cell.seed);
      outcomes.push_back(outcome);
    }
    return outcomes;
  }

 private:
  const FunctionSweep& sweep_;
};

std::vector<nlohmann::json> choices_of(const FunctionSweep& sweep) {
  std::vector<nlohmann::json> choices = {nlohmann::json::object()};
  for (const auto& [name, values] : sweep.grid) {
    check_grid_values(name, values);
    std::vector<nlohmann::json> longer;
    for (const nlohmann::json& chosen : choices)
      for (const nlohmann::json& value : values) {
        longer.push_back(chosen);
        longer.back()[name] = value;
      }
    check_cell_count(static_cast<double>(longer.size() * sweep.seeds.size()));
    choices = std::move(longer);
  }
  return choices;
}

SweepPlan plan_of(const FunctionSweep& sweep, const Workload& workload) {
  if (sweep.name.empty() || sweep.seeds.empty() || !sweep.value)
    throw ConfigError("a sweep of a function needs a name, seeds and the function",
                      {.hint = "set name, seeds and value of the FunctionSweep"});
  check_sweep_name(sweep.name);
  check_distinct(sweep.seeds, "seeds");
  SweepPlan plan{.label = sweep.name,
                 .workload = workload.name(),
                 .mode = "",
                 .version = sweep.version,
                 .cells = {}};
  for (const nlohmann::json& parameters : choices_of(sweep))
    for (const int64_t seed : sweep.seeds) {
      PlannedCell planned;
      planned.cell = {.method = "run", .seed = seed, .parameters = parameters.dump()};
      plan.cells.push_back(std::move(planned));
    }
  return plan;
}

void serve_as_worker(const FunctionSweep& sweep, const std::vector<std::string>& words) {
  WorkerFlags flags;
  config::parse_flags({config::list_fields(flags)}, words);
  run_worker_process(flags, [&] {
    return WorkerEquipment{.workload = std::make_unique<FunctionWorkload>(sweep), .gpu = ""};
  });
}

RunOptions run_options(const SweepOptions& options) {
  RunOptions run;
  run.store = options.store;
  // The kernel's path to the running program; it stays valid after the file was replaced or
  // removed.
  run.worker_command = {"/proc/self/exe", std::string(kWorker)};
  run.workers = options.workers;
  run.cores_per_worker = options.cores_per_worker;
  run.timeout_seconds = options.timeout_seconds;
  run.max_attempts = options.max_attempts;
  run.keep_going = true;  // the caller sees the failures
  run.log_folder = options.log_folder;
  return run;
}

convoy::SweepResults public_results(const SweepResults& results) {
  convoy::SweepResults shown;
  shown.table = table_text(results);
  for (const CellResult& cell : results.cells)
    shown.cells.push_back({.parameters = nlohmann::json::parse(cell.cell.parameters.str()),
                           .seed = cell.cell.seed,
                           .value = cell.value,
                           .failure = cell.failure ? cell.failure->message : ""});
  return shown;
}

}  // namespace
}  // namespace sweep

int64_t SweepResults::failed_cells() const {
  return std::count_if(cells.begin(), cells.end(),
                       [](const Cell& cell) { return std::isnan(cell.value); });
}

std::optional<SweepResults> run_function_sweep(const FunctionSweep& sweep,
                                               const SweepOptions& options, int argc,
                                               const char* const* argv) {
  const sweep::FunctionWorkload workload(sweep);
  if (argc > 1 && argv[1] == sweep::kWorker) {
    sweep::serve_as_worker(sweep, std::vector<std::string>(argv + 2, argv + argc));
    return std::nullopt;
  }
  const sweep::RunReport report =
      sweep::run_sweep(sweep::plan_of(sweep, workload), workload, sweep::run_options(options));
  if (report.stop_signal != 0)
    throw StopRequest(
        fmt::format("stopped by {}: {} of {} are done", processes::signal_name(report.stop_signal),
                    report.done, counted(report.cells, "cell")),
        {.hint = "run the same program again to continue"});
  return sweep::public_results(
      sweep::read_results(*jobs::open_store(options.store), report.sweep, workload));
}

}  // namespace convoy
