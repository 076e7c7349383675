// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/function_sweep.h"

#include <fmt/format.h>

#include <string_view>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/flags.h"
#include "convoy/farm/sweep/command/grid_values.h"
#include "convoy/farm/sweep/runner/worker_process.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::sweep {
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
  std::vector<DescentOutcome> descend(const std::vector<Cell>& cells) const override {
    std::vector<DescentOutcome> outcomes;
    for (const Cell& cell : cells) {
      DescentOutcome outcome;
      outcome.loss = sweep_.value(nlohmann::json::parse(cell.parameters.str()), cell.seed);
      outcomes.push_back(outcome);
    }
    return outcomes;
  }
  Theory theory(const Cell&) const override { return {}; }

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
  CONVOY_CHECK(!sweep.name.empty() && !sweep.seeds.empty() && sweep.value, ConfigError,
               "a sweep of a function needs a name, seeds and the function");
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

}  // namespace

std::optional<SweepResults> run_function_sweep(const FunctionSweep& sweep, RunOptions options,
                                               int argc, const char* const* argv) {
  const FunctionWorkload workload(sweep);
  if (argc > 1 && argv[1] == kWorker) {
    WorkerFlags flags;
    config::parse_flags({config::list_fields(flags)},
                        std::vector<std::string>(argv + 2, argv + argc));
    run_worker_process(flags, [&] {
      return WorkerEquipment{.workload = std::make_unique<FunctionWorkload>(sweep), .gpu = ""};
    });
    return std::nullopt;
  }
  // The kernel's name for the program that runs, wherever its file is, and also after the file was
  // replaced or removed.
  options.worker_command = {"/proc/self/exe", std::string(kWorker)};
  const RunReport report = run_sweep(plan_of(sweep, workload), workload, options);
  if (report.stop_signal != 0)
    throw StopRequest(
        fmt::format("stopped by {}: {} of {} are done", processes::signal_name(report.stop_signal),
                    report.done, counted(report.cells, "cell")),
        {.hint = "run the same program again to continue"});
  return read_results(*jobs::open_store(options.store), report.sweep, workload);
}

}  // namespace convoy::sweep
