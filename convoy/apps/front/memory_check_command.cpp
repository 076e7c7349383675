// SPDX-License-Identifier: Apache-2.0
//
// `convoy memory-check [RUN]`: does it fit, how much is left, do the ranks take alike.
#include <fmt/format.h>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/visible_gpus.h"
#include "convoy/base/error.h"
#include "convoy/config/resolve.h"
#include "convoy/monitor/memory_check.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/run_history.h"

namespace convoy::apps {
namespace {

struct MemoryCheckFlags {
  std::string dir = "runs";
  bool all = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dir", dir, "folder that holds the runs");
    visit("all", all, kAllGpusHelp);
  }
};

int run_memory_check(Context& context, const std::vector<std::string>& arguments) {
  MemoryCheckFlags flags;
  const std::vector<std::string> words = context.parse(flags, arguments);
  CONVOY_CHECK(words.size() <= 1, ConfigError, "memory-check takes one run, found {}",
               words.size());
  const auto environment = config::process_environment();
  const monitor::DeviceSources sources = monitor::device_sources(environment);
  monitor::MemoryInputs inputs;
  if (!words.empty())
    inputs.run = monitor::read_run_memory(telemetry::resolve_run(words[0], flags.dir));
  // A run's devices are its own, whatever this shell sees.
  const bool all = flags.all || inputs.run.has_value();
  monitor::DeviceReader reader(sources, visible_gpus(sources, environment, all).uuids);
  inputs.devices = reader.read();
  inputs.facts = monitor::read_host_facts(sources);
  // As placements name it.
  inputs.host = telemetry::host_name();
  inputs.host = inputs.host.substr(0, inputs.host.find('.'));
  const monitor::MemoryReport report = monitor::check_memory(inputs);
  fmt::print("{}", context.common.json ? monitor::memory_report_json(report)
                                       : monitor::memory_report_text(report));
  return 0;
}

}  // namespace

Command memory_check_command() {
  return {.name = "memory-check",
          .summary = "shows what is held and free of each device, and whether a run's ranks fit",
          .usage = "convoy memory-check [RUN]   (RUN: folder, name, its beginning, or last)",
          .examples =
              "convoy memory-check\n"
              "convoy memory-check last\n"
              "convoy memory-check runs/sums --json",
          .flag_table = config::flag_table_of<MemoryCheckFlags>,
          .run = run_memory_check};
}

}  // namespace convoy::apps
