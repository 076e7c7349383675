// SPDX-License-Identifier: Apache-2.0
//
// The CPUs' reads from memory and writes to it, by the counters of the memory controllers that the
// kernel shows as performance monitoring units: Intel's uncore_imc, AMD's amd_umc. Most kernels let
// only root and CAP_PERFMON read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"

namespace convoy::monitor {

// One event of one controller, as perf_event_open(2) takes it.
struct TrafficCounter {
  uint32_t unit_type = 0;
  uint64_t event = 0;  // perf_event_attr::config
  int cpu = 0;         // a CPU of the socket that the controller belongs to
  double mib = 0;      // MiB of one count
  bool writes = false;

  bool operator==(const TrafficCounter&) const = default;
};

// The counters of all controllers; empty if the kernel shows none, as in most virtual machines.
std::vector<TrafficCounter> traffic_counters(const std::filesystem::path& sys = "/sys");

struct MemoryTraffic {
  double read_mib = 0;  // since the counters were opened
  double written_mib = 0;
};

// One thread.
class MemoryTrafficReader {
 public:
  // Returns a descriptor from which the count can be read, or -1 and errno.
  using Opener = std::function<int(const TrafficCounter&)>;

  explicit MemoryTrafficReader(const std::filesystem::path& sys = "/sys");
  MemoryTrafficReader(const std::vector<TrafficCounter>& counters, const Opener& open);

  std::optional<MemoryTraffic> read();
  const std::string& reason() const { return reason_; }  // why reading fails; empty = it works

 private:
  struct OpenCounter {
    Descriptor descriptor;
    double mib = 0;
    bool writes = false;
  };
  std::vector<OpenCounter> counters_;
  std::string reason_;
};

}  // namespace convoy::monitor
