// SPDX-License-Identifier: Apache-2.0
//
// Decides whether the ranks of a run fit on their devices: joins each rank's own figures with the
// figures of device and host. The ranks' own figures decide; NVML's figures show the memory of
// other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/host/host.h"

namespace convoy::monitor {

struct RankMemoryFigures {
  int rank = 0;
  std::string host = {};         // empty = unknown
  std::string device = {};       // "gpu 0", "cpu"
  std::string device_uuid = {};  // empty on CPUs
  int64_t held_bytes = -1;       // at the end of the last step; negative = unknown
  int64_t peak_bytes = -1;
  int64_t reserved_bytes = -1;  // device memory held by its allocator; unknown on CPUs
};

// The newest step of a run.
struct RunMemory {
  std::string name = {};
  std::string state = {};  // "running", "finished", ...
  bool running = false;
  int64_t step = 0;
  std::vector<RankMemoryFigures> ranks = {};
};

// Reads the run's events and the placements that its launchers wrote. Throws DataError when no step
// was written, or when the Convoy that wrote them did not write the memory of ranks.
RunMemory read_run_memory(const std::filesystem::path& run);

enum class MemoryFit { Fits, Tight, TooMuch, Unknown };

struct MemoryReport {
  struct Pool {  // a device of this host, or the host's memory
    std::string label;
    std::optional<int64_t> total_mib, used_mib, kept_mib;  // kept by the driver
    std::optional<int64_t> processes = {};                 // processes that compute on the device
    std::vector<int> ranks = {};
    std::optional<int64_t> others_mib = {};    // used beside these ranks' reserved memory
    std::optional<int64_t> headroom_mib = {};  // free at the ranks' peaks; without a run: free now
  };
  std::optional<RunMemory> run = {};
  std::vector<Pool> pools = {};
  MemoryFit fit = MemoryFit::Unknown;
  std::string words = {};      // the fit in words
  std::string imbalance = {};  // one sentence; empty with one rank
};

struct MemoryInputs {
  std::optional<RunMemory> run = {};
  std::vector<DeviceReading> devices = {};
  HostFacts facts = {};
  std::string host = {};  // this host's name
};
MemoryReport check_memory(const MemoryInputs& inputs);

std::string memory_report_text(const MemoryReport& report);
std::string memory_report_json(const MemoryReport& report);

}  // namespace convoy::monitor
