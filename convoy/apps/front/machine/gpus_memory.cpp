// SPDX-License-Identifier: Apache-2.0
//
// `convoy gpus memory [RUN]`: checks whether a run fits, how much memory is left, and whether the
// ranks use equal amounts.
#include <fmt/format.h>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/machine/visible_gpus.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/machine/monitor/doctor/memory_check.h"

namespace convoy::apps {
namespace {

struct MemoryFlags {
  std::string dir = "runs";
  bool all = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dir", dir, "folder that holds the runs");
    visit("all", all, kAllGpusHelp);
  }
};

int check_memory(const Context& context, const MemoryFlags& flags, const Words& words) {
  if (words.size() > 1)
    throw ConfigError(fmt::format("gpus memory takes one run, found {}", words.size()),
                      {.hint = "name one run; `convoy runs list` shows them"});
  const auto environment = config::process_environment();
  const monitor::DeviceSources sources = monitor::device_sources(environment);
  monitor::MemoryInputs inputs;
  if (!words.empty())
    inputs.run = monitor::read_run_memory(telemetry::resolve_run(words[0], flags.dir));
  // A run's devices are read from the run, not from this shell's visible devices.
  const bool all = flags.all || inputs.run.has_value();
  monitor::DeviceReader reader(sources, visible_gpus(sources, environment, all).uuids);
  inputs.devices = reader.read();
  inputs.facts = monitor::read_host_facts(sources);
  // The host name without its domain, as placements use it.
  inputs.host = telemetry::host_name();
  inputs.host = inputs.host.substr(0, inputs.host.find('.'));
  const monitor::MemoryReport report = monitor::check_memory(inputs);
  fmt::print("{}", context.common.json ? monitor::memory_report_json(report)
                                       : monitor::memory_report_text(report));
  return 0;
}

}  // namespace

Command gpus_memory_action() {
  return {.name = "memory",
          .summary = "Show device memory, and whether a run's ranks fit",
          .usage = "convoy gpus memory [RUN]   (RUN: folder, name, prefix of a name, or last)",
          .examples =
              "convoy gpus memory\n"
              "convoy gpus memory last\n"
              "convoy gpus memory runs/sums --json",
          .flags = {flags_of<MemoryFlags>()},
          .run = with_flags_of<MemoryFlags, check_memory>};
}

}  // namespace convoy::apps
