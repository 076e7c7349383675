// SPDX-License-Identifier: Apache-2.0
//
// Plans the placement of each local rank before any starts: device, CPUs, NUMA node and threads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/launch/place/visible_devices.h"
#include "convoy/machine/monitor/host/machine.h"

namespace convoy::launch {

using monitor::Cpu;
using monitor::cpu_list_text;
using monitor::Machine;

enum class NumaBinding {
  None,         // CPUs are planned and shown, not enforced
  Node,         // all CPUs of the device's NUMA node
  Socket,       // all CPUs of the device's socket
  Exclusive,    // whole cores of the node, shared out among its ranks
  CoreComplex,  // the CPUs under one last-level cache of the node
};
NumaBinding numa_binding_of(const std::string& word);  // Throws ConfigError

enum class ThreadRule {
  // convoy-worker: the cores planned for the rank, divided among the ranks that share them. At most
  // the rank's part of a CPU quota, at least 1.
  OwnWorker,
  // Foreign programs, as torchrun does: 1 with several ranks, else OMP_NUM_THREADS stays unset.
  Torchrun,
};

// Set when this process is itself one of several ranks that an outer launcher started.
struct AdoptedRank {
  int local_rank = 0;
  int ranks_on_host = 1;
};

struct PlacementRequest {
  std::string host = {};
  int num_ranks = 1;                        // to start on this host
  int first_rank = 0;                       // global rank of the first of them
  std::optional<AdoptedRank> adopted = {};  // if set, num_ranks is 1 and first_rank its rank
  NumaBinding binding = NumaBinding::None;
  // Applies when the user asks for no number of threads and OMP_NUM_THREADS is unset.
  ThreadRule threads = ThreadRule::Torchrun;
  std::string omp_num_threads = {};  // from the environment; empty = unset
  int asked_threads = 0;             // threads of each rank that the user asks for; 0 = none
  bool virtual_local_rank = false;
  int devices_of_rank = 1;            // devices that a single rank computes on; 0 = all
  bool announce_idle_devices = true;  // names devices that no rank is planned for
};

struct RankPlacement {
  int rank = 0;
  int local_rank = 0;
  std::string host = {};
  std::string device = {};       // "gpu 0", "mig 0/7/0", "gpu 0, gpu 1" or "cpu"
  std::string device_uuid = {};  // the first device's; empty on CPUs
  // CUDA_VISIBLE_DEVICES for this rank only; empty = the value that all ranks share.
  std::string visible_device;
  std::vector<int> cpus = {};  // planned for the rank
  bool bind = false;           // the child calls sched_setaffinity with `cpus`
  int numa_node = -1;          // -1 = several or unknown
  int threads = 0;             // for OMP_NUM_THREADS; 0 = leave the variable unset
};

struct Placement {
  std::vector<RankPlacement> ranks = {};  // by local rank
  std::vector<std::string> notes = {};
};

// Devices go to local ranks in order; more ranks than devices share them round robin, with a note.
// Without a binding the ranks get equal slices of cores. Ranks whose devices are on one NUMA node
// share the cores of this node. Other ranks share all cores in the order of nodes, so that a slice
// is on two nodes only where the numbers do not divide evenly. CPUs of one core stay together as
// long as there are enough cores. Throws ConfigError when a binding is impossible: fewer cores than
// ranks on a node, or a node without usable CPUs.
Placement plan_placement(const PlacementRequest& request, const DeviceSelection& devices,
                         const Machine& machine);

std::string placement_table(const std::vector<RankPlacement>& ranks);  // ends with a line break
std::string placement_json(const std::vector<RankPlacement>& ranks);   // an array on one line

}  // namespace convoy::launch
