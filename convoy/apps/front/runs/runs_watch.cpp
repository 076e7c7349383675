// SPDX-License-Identifier: Apache-2.0
//
// `convoy runs watch`: writes only the device CSV, in the format of the processing guide's monitor.
#include <fmt/format.h>
#include <poll.h>

#include <chrono>

#include "convoy/apps/front/command.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/process/results/usage_csv.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

struct RunsWatchFlags {
  double interval = 1;
  std::string output = "gpu_usage.csv";
  double duration = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("interval", interval, "seconds between rows").above(0).at_most(86'400);
    visit("output", output, "CSV file; an existing one with the same columns is appended to")
        .alias("o");
    visit("duration", duration, "seconds to watch; 0 = until Ctrl-C").at_least(0);
  }
};

using Clock = std::chrono::steady_clock;

// Waits until `when`, or for a signal. Returns true to go on.
bool wait_until(Clock::time_point when, const processes::SignalStream& signals) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(when - Clock::now()).count();
    if (left <= 0) return true;
    pollfd watched{signals.descriptor(), POLLIN, 0};
    if (::poll(&watched, 1, static_cast<int>(left)) > 0) return false;
  }
}

int watch(const Context& context, const RunsWatchFlags& flags, const Words& rest) {
  if (!rest.empty())
    throw ConfigError(fmt::format("runs watch takes flags only, found `{}`", rest[0]),
                      {.hint = "--dir FOLDER names the folder of the runs"});
  monitor::DeviceReader devices(monitor::device_sources(launch::process_environment()));
  process::UsageCsv csv(flags.output);
  const processes::SignalStream signals(processes::default_stop_signals());
  context.log().info(fmt::format("writing {} every {:g} s", flags.output, flags.interval));
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  };
  const auto end =
      flags.duration > 0 ? Clock::now() + seconds(flags.duration) : Clock::time_point::max();
  for (auto next = Clock::now();; next += seconds(flags.interval)) {
    if (next > end || !wait_until(next, signals)) return 0;
    csv.add(devices.read(), {});
  }
}

}  // namespace

Command runs_watch_action() {
  return {.name = "watch",
          .summary = "Write what the GPUs do as CSV, until Ctrl-C",
          .usage = "convoy runs watch [--interval S] [--output F.csv] [--duration S]",
          .examples = "convoy runs watch --interval 1.0 --output gpu_usage.csv",
          .flags = {flags_of<RunsWatchFlags>()},
          .run = with_flags_of<RunsWatchFlags, watch>};
}

}  // namespace convoy::apps
