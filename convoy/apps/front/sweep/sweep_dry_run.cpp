// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/sweep/sweep_dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/sweep/runner/plan_cost.h"
#include "convoy/farm/sweep/runner/plan_history.h"
#include "convoy/farm/sweep/runner/worker_start.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::apps {
namespace {

using sweep::PlannedCell;
using sweep::SweepPlan;
using telemetry::count_text;
using telemetry::duration_text;

constexpr double kMeasureSeconds = 2;

void print_cells(const Context& context, const SweepPlan& plan) {
  if (!context.common.json) {
    for (const PlannedCell& planned : plan.cells) fmt::print("{}\n", planned.parameters());
    return;
  }
  nlohmann::ordered_json cells = nlohmann::ordered_json::array();
  for (const PlannedCell& planned : plan.cells)
    cells.push_back(nlohmann::ordered_json::parse(planned.parameters()));
  fmt::print("{}\n", cells.dump(2));
}

// Without a readable store, all cells of the plan are open.
sweep::PlanHistory history_of(const Context& context, const SweepPlan& plan,
                              const std::string& store) {
  const bool is_server = store.find("://") != std::string::npos || store.find('=') < store.size();
  const sweep::PlanHistory none{.store = is_server ? "the store" : store,
                                .open = plan.cells,
                                .command_seconds = std::nan("")};
  if (!is_server && !std::filesystem::exists(store)) return none;
  try {
    return sweep::read_history(*jobs::open_store(store, {.access = jobs::Access::ReadOnly}), plan);
  } catch (const Error& error) {
    context.log().warning(fmt::format("the store is not counted: {}", error.sentence()));
    return none;
  }
}

std::string totals_text(const sweep::PlanTotals& totals) {
  std::string text;
  if (totals.guess_cells > 0)
    text = fmt::format("{}{} guesses in {}", totals.may_end_early ? "at most " : "",
                       count_text(static_cast<double>(totals.guesses)),
                       counted(totals.guess_cells, "cell"));
  if (totals.descents > 0)
    text += fmt::format("{}{} steps in {}", text.empty() ? "" : ", ",
                        count_text(static_cast<double>(totals.steps)),
                        counted(totals.descents, "descent"));
  return text;
}

// Opens the first GPU. Its measured speed is taken for the other GPUs too.
std::shared_ptr<experiments::cuda::Device> first_gpu(const Context& context,
                                                     const std::vector<std::string>& devices) {
  if (devices.empty()) return nullptr;
  try {
    return experiments::cuda::open_device(
        experiments::cuda::driver_library(launch::process_environment()), devices.front());
  } catch (const Error& error) {
    context.log().warning(fmt::format("GPUs are not counted: {}", error.sentence()));
    return nullptr;
  }
}

std::string measured_text(const Context& context, const SweepPlan& plan,
                          const std::vector<PlannedCell>& open, const sweep::RunOptions& options,
                          const experiments::WorkloadKind& kind) {
  const std::vector<std::string> devices = sweep::wanted_devices(options);
  const auto environments =
      sweep::worker_environments(options, devices, sweep::worker_count(options, devices));
  const auto gpu = options.compute_device == "cpu" ? nullptr : first_gpu(context, devices);
  const int64_t gpus = gpu ? std::ssize(devices) : 0;
  const int64_t cpus = std::ssize(environments) - gpus;
  const auto on_cpu = kind.make(plan.mode, nullptr);
  const auto on_gpu = gpu ? kind.make(plan.mode, gpu) : nullptr;
  std::vector<sweep::CostEngine> engines;
  if (cpus > 0) engines.push_back({.workload = on_cpu.get(), .workers = cpus, .measured = cpus});
  if (gpus > 0)
    engines.push_back(
        {.workload = on_gpu.get(), .workers = gpus, .cells_together = 128, .is_gpu = true});
  const sweep::PlanCost cost = sweep::measure_cost(open, kind.steps, engines, kMeasureSeconds);
  std::string rates;
  if (cost.guesses_per_second > 0)
    rates = fmt::format("{} guesses/s", count_text(cost.guesses_per_second));
  if (cost.steps_per_second > 0)
    rates += fmt::format("{}{} steps/s", rates.empty() ? "" : " and ",
                         count_text(cost.steps_per_second));
  return fmt::format("about {} with {}: {}, measured just now", duration_text(cost.seconds),
                     sweep::workers_text(environments), rates);
}

std::string history_text(const sweep::PlanHistory& history, const sweep::RunOptions& options) {
  if (!std::isfinite(history.command_seconds))
    return fmt::format("the time is not known: {} has no finished cell of this command",
                       history.store);
  const std::vector<std::string> devices = sweep::wanted_devices(options);
  const auto environments =
      sweep::worker_environments(options, devices, sweep::worker_count(options, devices));
  const int64_t workers = std::ssize(environments);
  const auto turns = static_cast<double>((std::ssize(history.open) + workers - 1) / workers);
  return fmt::format(
      "about {} with {}: {:.3g} s a cell, the mean of finished cells of this command",
      duration_text(turns * history.command_seconds), sweep::workers_text(environments),
      history.command_seconds);
}

}  // namespace

int print_dry_run(const Context& context, const SweepPlan& plan, const sweep::RunOptions& options,
                  const experiments::WorkloadKind* kind) {
  print_cells(context, plan);
  std::fflush(stdout);
  const sweep::PlanHistory history = history_of(context, plan, options.store);
  const std::string totals =
      kind == nullptr ? "" : totals_text(sweep::totals_of(history.open, kind->steps));
  const auto cells = std::ssize(plan.cells), open = std::ssize(history.open);
  context.log().info(fmt::format("{} of {}, version {}{}", counted(cells, "cell"), plan.name(),
                                 plan.version,
                                 open == cells && !totals.empty() ? ": " + totals : ""));
  if (open < cells)
    context.log().info(fmt::format("{} stored in {}, {} left to compute{}{}", cells - open,
                                   history.store, open == 0 ? "none" : std::to_string(open),
                                   totals.empty() ? "" : ": ", totals));
  if (open == 0) return 0;
  context.log().info(kind == nullptr ? history_text(history, options)
                                     : measured_text(context, plan, history.open, options, *kind));
  return 0;
}

}  // namespace convoy::apps
