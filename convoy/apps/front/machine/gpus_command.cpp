// SPDX-License-Identifier: Apache-2.0
//
// `convoy gpus`: shows devices, their links, their memory and their activity.
#include <fmt/format.h>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/machine/visible_gpus.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/resolve.h"
#include "convoy/machine/monitor/gpus/gpu_info.h"
#include "convoy/machine/monitor/gpus/topology.h"

namespace convoy::apps {
namespace {

struct AllFlags {
  bool all = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("all", all, kAllGpusHelp);
  }
};

VisibleGpus wanted_gpus(const AllFlags& flags, const Words& words, std::string_view action,
                        const monitor::DeviceSources& sources) {
  if (!words.empty())
    throw ConfigError(fmt::format("gpus {} takes flags only, found `{}`", action, words[0]),
                      {.hint = fmt::format("`convoy gpus {} --help` lists them", action)});
  return visible_gpus(sources, config::process_environment(), flags.all);
}

int show(const Context& context, const AllFlags& flags, const Words& words) {
  const auto sources = monitor::device_sources(config::process_environment());
  const VisibleGpus visible = wanted_gpus(flags, words, "show", sources);
  monitor::GpuInfo info = monitor::read_gpu_info(sources, visible.uuids);
  info.num_hidden = visible.num_hidden;
  info.hidden_by = visible.hidden_by;
  fmt::print("{}",
             context.common.json ? monitor::gpu_info_json(info) : monitor::gpu_info_text(info));
  return 0;
}

int show_topology(const Context& context, const AllFlags& flags, const Words& words) {
  const auto sources = monitor::device_sources(config::process_environment());
  const VisibleGpus visible = wanted_gpus(flags, words, "topology", sources);
  const monitor::Topology topology = monitor::read_topology(sources, visible.uuids);
  fmt::print("{}", context.common.json ? monitor::topology_json(topology)
                                       : monitor::topology_text(topology));
  return 0;
}

}  // namespace

Command gpus_command() {
  return {.name = "gpus",
          .summary = "Show GPUs: state, links, memory, use over time",
          .usage = "convoy gpus [show|topology|memory|watch] [flags]",
          .examples =
              "convoy gpus\n"
              "convoy gpus topology\n"
              "convoy gpus watch --interval 5 --output gpu_usage_multi.csv",
          .actions = {{.name = "show",
                       .summary = "Show the GPUs, their state and the host around them",
                       .usage = "convoy gpus [show] [--all] [--json]",
                       .examples = "convoy gpus\nconvoy gpus show --json --all",
                       .flags = {flags_of<AllFlags>()},
                       .run = with_flags_of<AllFlags, show>},
                      {.name = "topology",
                       .summary = "Show how GPUs and network cards are linked",
                       .usage = "convoy gpus topology [--all] [--json]",
                       .examples = "convoy gpus topology\nconvoy gpus topology --json",
                       .flags = {flags_of<AllFlags>()},
                       .run = with_flags_of<AllFlags, show_topology>},
                      gpus_memory_action(),
                      gpus_watch_action()},
          .usual_action = "show",
          .group = HelpGroup::Look};
}

}  // namespace convoy::apps
