// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep check`: tests the numbers of sweeps on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/sweep_command.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/experiments/self_check.h"
#include "convoy/farm/sweep/runner/worker_command.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::apps {
namespace {

struct SweepCheckFlags {
  int64_t max_gpus = -1;

  template <class Visitor>
  void fields(Visitor& visit) {
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

int check(const Context& context, const SweepCheckFlags& flags, const Words& rest) {
  CONVOY_CHECK(rest.empty(), ConfigError, "sweep check takes flags only, found `{}`", rest.front());
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
          .summary = "Check the numbers of sweeps on this machine",
          .usage = "convoy sweep check [flags]",
          .examples = "convoy sweep check",
          .flags = {flags_of<SweepCheckFlags>()},
          .run = with_flags_of<SweepCheckFlags, check>};
}

}  // namespace convoy::apps
