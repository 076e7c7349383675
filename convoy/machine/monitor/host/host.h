// SPDX-License-Identifier: Apache-2.0
//
// The host around the GPUs, from /proc and /sys: its hardware, and the present load of its CPUs,
// memory, disks and network.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/monitor/gpus/devices.h"
#include "convoy/machine/monitor/host/cpu_energy.h"
#include "convoy/machine/monitor/host/job_processes.h"
#include "convoy/machine/monitor/host/memory_traffic.h"

namespace convoy::monitor {

struct NumaNode {
  int id = 0;
  std::string cpus = {};  // "0-47,96-143"
  std::optional<int64_t> memory_mib = {};
  std::optional<int64_t> free_mib = {};
};

struct HostFacts {
  std::string cpu_model = {};  // empty = unknown
  int sockets = 1;
  int cores = 0;  // 0 = unknown
  int cpus = 0;   // online
  int usable_cpus = 1;
  int64_t memory_mib = 0;  // 0 = unknown
  int64_t available_mib = 0;
  int64_t usable_mib = 0;  // available to a new process: cgroups count; 0 = unknown
  int64_t swap_mib = 0;
  std::vector<NumaNode> nodes = {};
};

HostFacts read_host_facts(const DeviceSources& sources = {});

enum class HostMetric {
  CpuBusy,
  Load,
  MemUsed,
  MemTotal,
  SwapUsed,
  DiskRead,
  DiskWrite,
  NetReceived,
  NetSent,
  CpuEnergy,
  MemRead,
  MemWritten,
  JobCores,
  JobMem
};
constexpr size_t kNumHostMetrics = static_cast<size_t>(HostMetric::JobMem) + 1;

struct HostMetricFacts {
  HostMetric metric;
  const char* name;  // the column's name; its end is the unit
  const char* prometheus;
  int decimals;
  const char* meaning;
};
const std::array<HostMetricFacts, kNumHostMetrics>& host_metric_table();

class HostValues {
 public:
  const std::optional<double>& operator[](HostMetric metric) const {
    return values_[static_cast<size_t>(metric)];
  }
  std::optional<double>& operator[](HostMetric metric) {
    return values_[static_cast<size_t>(metric)];
  }

 private:
  std::array<std::optional<double>, kNumHostMetrics> values_ = {};
};

// The job whose own use of the host is reported too.
enum class WatchedJob { None, OwnChildren };  // OwnChildren: processes that this process started

struct HostGap {
  HostMetric metric;
  std::string reason;
};

// Rates are averages since the previous reading; the first reading has none. One thread.
class HostReader {
 public:
  explicit HostReader(const DeviceSources& sources = {}, WatchedJob job = WatchedJob::None);

  HostValues read();
  std::vector<HostGap> gaps() const;  // known so far, with reasons

 private:
  struct Counters {
    double cpu_busy = 0, cpu_all = 0;                                // ticks
    double disk_read = 0, disk_written = 0, received = 0, sent = 0;  // bytes
    std::optional<MemoryTraffic> memory = {};
    std::optional<JobUsage> job = {};
  };
  Counters read_counters();
  void read_memory(HostValues& values) const;

  DeviceSources sources_;
  CpuEnergy energy_;
  MemoryTrafficReader memory_traffic_;
  std::optional<JobProcesses> job_;
  std::optional<Counters> before_;
  std::vector<std::string> disks_;  // whole disks, not their partitions
  bool disks_known_ = false;
  std::chrono::steady_clock::time_point time_ = {};
};

}  // namespace convoy::monitor
