// SPDX-License-Identifier: Apache-2.0
//
// `convoy gpu-info` and `convoy topo`: what devices there are and how they are linked.
#include <fmt/format.h>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/visible_gpus.h"
#include "convoy/base/error.h"
#include "convoy/config/resolve.h"
#include "convoy/monitor/gpu_info.h"
#include "convoy/monitor/topology.h"

namespace convoy::apps {
namespace {

struct AllFlags {
  bool all = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("all", all, kAllGpusHelp);
  }
};

VisibleGpus wanted_gpus(Context& context, const std::vector<std::string>& arguments,
                        std::string_view command, const monitor::DeviceSources& sources) {
  AllFlags flags;
  const std::vector<std::string> rest = context.parse(flags, arguments);
  CONVOY_CHECK(rest.empty(), ConfigError, "{} takes flags only, found `{}`", command, rest[0]);
  return visible_gpus(sources, config::process_environment(), flags.all);
}

int run_gpu_info(Context& context, const std::vector<std::string>& arguments) {
  const auto sources = monitor::device_sources(config::process_environment());
  const VisibleGpus visible = wanted_gpus(context, arguments, "gpu-info", sources);
  monitor::GpuInfo info = monitor::read_gpu_info(sources, visible.uuids);
  info.num_hidden = visible.num_hidden;
  info.hidden_by = visible.hidden_by;
  fmt::print("{}",
             context.common.json ? monitor::gpu_info_json(info) : monitor::gpu_info_text(info));
  return 0;
}

int run_topo(Context& context, const std::vector<std::string>& arguments) {
  const auto sources = monitor::device_sources(config::process_environment());
  const VisibleGpus visible = wanted_gpus(context, arguments, "topo", sources);
  const monitor::Topology topology = monitor::read_topology(sources, visible.uuids);
  fmt::print("{}", context.common.json ? monitor::topology_json(topology)
                                       : monitor::topology_text(topology));
  return 0;
}

}  // namespace

Command gpu_info_command() {
  return {.name = "gpu-info",
          .summary = "shows the GPUs, what they do now, and the host around them",
          .usage = "convoy gpu-info [--all] [--json]",
          .examples =
              "convoy gpu-info\n"
              "convoy gpu-info --json --all",
          .flag_table = config::flag_table_of<AllFlags>,
          .run = run_gpu_info};
}

Command topo_command() {
  return {.name = "topo",
          .summary = "shows how GPUs and network cards are linked",
          .usage = "convoy topo [--all] [--json]",
          .examples =
              "convoy topo\n"
              "convoy topo --json",
          .flag_table = config::flag_table_of<AllFlags>,
          .run = run_topo};
}

}  // namespace convoy::apps
