// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/generate/engine_pool.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "convoy/apps/front/process/process_workers.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/launch/place/placement.h"
#include "convoy/machine/monitor/host/machine.h"

namespace convoy::apps {
namespace {

int64_t num_numa_nodes(const monitor::Machine& machine) {
  std::set<int> nodes;
  for (const monitor::Cpu& cpu : machine.cpus) nodes.insert(cpu.numa_node);
  return std::max<int64_t>(1, std::ssize(nodes));
}

// Returns the CPUs of each engine. They lie in one NUMA node when the engines divide evenly among
// the nodes.
std::vector<std::vector<int>> cpu_slices(const monitor::Machine& machine, int64_t engines) {
  const launch::Placement placement = launch::plan_placement(
      {.num_ranks = static_cast<int>(engines), .threads = launch::ThreadRule::OwnWorker}, {},
      machine);
  std::vector<std::vector<int>> slices;
  for (const launch::RankPlacement& rank : placement.ranks) slices.push_back(rank.cpus);
  return slices;
}

}  // namespace

processes::PoolOptions engine_pool(const Context& context, const EngineWishes& wishes,
                                   Words words) {
  const monitor::Machine machine = monitor::read_machine();
  settings::WorkerSettings wanted;
  wanted.devices = wishes.devices == "gpu" ? "cuda" : wishes.devices;
  wanted.world_size = wishes.engines;
  wanted.threads = wishes.threads;
  ProcessWorkers engines = find_process_workers(context, wanted);
  for (const std::string& note : engines.notes) context.log().warning(note);
  const bool on_cpus = engines.devices == "cpu";
  if (on_cpus && wanted.world_size == 0) engines.count = num_numa_nodes(machine);
  words.insert(words.begin(), {worker_program(context).string(), "serve"});
  words.insert(words.end(), {"--devices", engines.devices});
  processes::PoolOptions pool;
  pool.command = std::move(words);
  pool.workers = engines.count;
  pool.environment = std::move(engines.environment);
  if (on_cpus && engines.count > 1) {
    pool.environment.resize(static_cast<size_t>(engines.count),
                            worker_environment(context, wishes.threads));
    pool.cpus = cpu_slices(machine, engines.count);
  }
  return pool;
}

}  // namespace convoy::apps
