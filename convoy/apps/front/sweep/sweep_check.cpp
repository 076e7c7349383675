// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep check`: tests the numbers of sweeps on this machine, or the numbers in a store.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/sweep/sweep_command.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/experiments/self_check.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "convoy/farm/sweep/runner/worker_start.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::apps {
namespace {

struct SweepCheckFlags {
  int64_t max_gpus = -1;
  std::string store;
  bool redo = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store,
          "check the cells of this store in place of the machine: a file or its folder, PostgreSQL "
          "URL or \"host=... dbname=...\"");
    visit("redo", redo, "open wrong cells of the store again, for the same sweep command");
    visit("max_gpus", max_gpus, "this many GPUs at most; -1 = all, 0 = none").at_least(-1);
  }
};

std::vector<std::shared_ptr<experiments::cuda::Device>> gpus_of(const Context& context,
                                                                int64_t max_gpus) {
  sweep::RunOptions options;
  options.compute_device = "auto";
  options.why_no_gpus = [] {
    return experiments::cuda::why_no_gpus(
        experiments::cuda::driver_library(launch::process_environment()));
  };
  options.max_gpus = max_gpus;
  options.log = context.log();
  std::vector<std::shared_ptr<experiments::cuda::Device>> gpus;
  const auto driver = experiments::cuda::driver_library(launch::process_environment());
  for (const std::string& place : sweep::wanted_devices(options))
    gpus.push_back(experiments::cuda::open_device(driver, place, static_cast<int>(gpus.size())));
  return gpus;
}

// One sweep of a store: its number of cells, and the wrong ones.
struct CheckedSweep {
  sweep::SweepName name;
  int64_t cells = 0;
  std::vector<sweep::LackingCell> wrong;
};

std::vector<CheckedSweep> checked_sweeps(jobs::JobStore& store) {
  std::vector<CheckedSweep> checked;
  for (const sweep::SweepName& name : sweep::stored_sweeps(store)) {
    if (!name.problem.empty())
      throw DataError(name.problem,
                      {.file = store.name(), .hint = "`convoy sweep recover` repairs the store"});
    const sweep::StoredSweep stored = sweep::stored_sweep(store, name);
    checked.push_back({.name = name,
                       .cells = sweep::count_cells(store, stored),
                       .wrong = sweep::cells_lacking_guesses(store, stored)});
  }
  return checked;
}

void print_wrong(const Context& context, const std::vector<CheckedSweep>& checked) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const CheckedSweep& one : checked)
    for (const sweep::LackingCell& wrong : one.wrong) {
      const sweep::Cell& cell = wrong.planned.cell;
      if (!context.common.json)
        fmt::print("{} {} seed {} {}: {} of {} guesses were made\n", one.name.name, cell.method,
                   cell.seed, cell.parameters.str(), wrong.guesses, wrong.units);
      rows.push_back({{"sweep", one.name.name},
                      {"method", cell.method},
                      {"seed", cell.seed},
                      {"parameters", nlohmann::ordered_json::parse(cell.parameters.str())},
                      {"guesses", wrong.guesses},
                      {"wanted_guesses", wrong.units}});
    }
  if (context.common.json) fmt::print("{}\n", rows.dump(2));
}

int check_store(const Context& context, const SweepCheckFlags& flags) {
  const auto store =
      jobs::open_store(store_at(flags.store),
                       {.access = flags.redo ? jobs::Access::ReadWrite : jobs::Access::ReadOnly});
  const std::vector<CheckedSweep> checked = checked_sweeps(*store);
  print_wrong(context, checked);
  int64_t cells = 0, wrong = 0, opened = 0;
  for (const CheckedSweep& one : checked) {
    cells += one.cells;
    wrong += std::ssize(one.wrong);
    if (flags.redo) opened += sweep::compute_again(*store, one.wrong);
  }
  if (wrong > 0 && !flags.redo)
    throw Error(ExitCode::Numeric, "lost_guesses",
                fmt::format("{} of {} lack guesses that count as made: do not use their values",
                            wrong, counted(cells, "cell")),
                {.file = store->name(),
                 .hint = "--redo opens them again, and the same sweep command computes them"});
  context.log().info(
      opened > 0 ? fmt::format("open again: {} of {}; the same sweep command computes what is open",
                               opened, counted(cells, "cell"))
                 : fmt::format("{} in {}: none lacks a guess", counted(cells, "cell"),
                               counted(std::ssize(checked), "sweep")));
  return 0;
}

int check(const Context& context, const SweepCheckFlags& flags, const Words& rest) {
  if (!rest.empty())
    throw ConfigError(fmt::format("sweep check takes flags only, found `{}`", rest.front()),
                      {.hint = "`convoy sweep check --help` lists them"});
  if (flags.redo && flags.store.empty())
    throw ConfigError("--redo needs --store STORE",
                      {.hint = "name the store whose answers are computed again"});
  if (!flags.store.empty()) return check_store(context, flags);
  const auto gpus = gpus_of(context, flags.max_gpus);
  double seconds = 0;
  const auto tell = [&](const experiments::CheckOutcome& one) {
    seconds += one.seconds;
    if (context.common.json) return;
    fmt::print("{:<8}{:<32}{:>5.1f} s  {}\n", one.passed ? "ok" : "FAILED", one.name, one.seconds,
               one.detail);
    std::fflush(stdout);
  };
  const auto outcomes = experiments::self_check(gpus, tell);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& one : outcomes)
    rows.push_back({{"check", one.name},
                    {"passed", one.passed},
                    {"detail", one.detail},
                    {"seconds", one.seconds}});
  if (context.common.json) fmt::print("{}\n", rows.dump(2));
  const auto failed =
      std::count_if(outcomes.begin(), outcomes.end(), [](const auto& one) { return !one.passed; });
  const std::string checks = counted(std::ssize(outcomes), "check");
  if (failed > 0)
    throw Error(ExitCode::Numeric, "failed_check", fmt::format("{} of {} failed", failed, checks),
                {.hint = "do not trust sweeps of this machine; memory and overclocking are the "
                         "usual causes"});
  context.log().info(fmt::format(
      "{} passed in {}; {}", checks, telemetry::duration_text(seconds),
      gpus.empty() ? "no GPU was checked" : counted(std::ssize(gpus), "GPU") + " took part"));
  return 0;
}

}  // namespace

Command sweep_check_action() {
  return {.name = "check",
          .summary = "Check the numbers of this machine, or the cells of a store",
          .usage = "convoy sweep check [flags]",
          .examples =
              "convoy sweep check\n"
              "convoy sweep check --store results/sweep.db",
          .flags = {flags_of<SweepCheckFlags>()},
          .run = with_flags_of<SweepCheckFlags, check>};
}

}  // namespace convoy::apps
