// SPDX-License-Identifier: Apache-2.0
//
// CPUs of this host as the kernel describes them: sockets, NUMA nodes, cores, shared caches, and
// which of them this process may use.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace convoy::monitor {

struct Cpu {
  int id = 0;
  int core = 0;     // smallest CPU id of the same physical core
  int complex = 0;  // smallest CPU id under the same last-level cache; negative = not known
  int numa_node = 0;
  int socket = 0;
};

struct Machine {
  std::vector<Cpu> cpus = {};  // CPUs that this process may run on, by id
  int usable_cpus = 1;         // cpus, or less by a cgroup quota
  bool limited_by_quota = false;
  // True when srun, mpirun, taskset or the like bound this process to a part of the CPUs that its
  // cgroup (or the host) has.
  bool bound = false;
  std::map<int, int> socket_of_node = {};  // every NUMA node with CPUs, allowed or not

  int num_cores() const;  // physical cores with at least one CPU in `cpus`
};

struct MachineSources {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
  std::optional<std::vector<int>> allowed_cpus = {};  // nothing = sched_getaffinity
};

// Missing files read as one socket, one node, no shared cores. Never throws.
Machine read_machine(const MachineSources& sources = {});

// Converts CPU ids to text as sysfs and taskset write it, "0-2,4", and back. read_cpu_list skips
// parts that are neither a number nor a range.
std::string cpu_list_text(const std::vector<int>& cpus);
std::vector<int> read_cpu_list(const std::string& text);

}  // namespace convoy::monitor
