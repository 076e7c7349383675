// SPDX-License-Identifier: Apache-2.0
//
// Finds problems that keep a job from starting, make it slow or stop it later. Facts are read
// first; the findings are a plain function of the facts. Changes nothing on the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/machine/monitor/doctor/memory_check.h"
#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/gpus/topology.h"
#include "convoy/machine/monitor/host/host.h"

namespace convoy::monitor {

enum class FindingLevel { Fine, Note, Warning, Blocking };

struct Finding {
  FindingLevel level = FindingLevel::Fine;
  std::string check;                    // "driver", "nofile", ...: stable for scripts
  std::string text;                     // the finding
  std::string fix = {};                 // one action; empty where nothing is to be done
  ExitCode code = ExitCode::Resources;  // exit code if the finding blocks, or warns under --strict
};

struct Limit {
  std::optional<uint64_t> soft = {};  // nothing = unlimited
  std::optional<uint64_t> hard = {};
};

struct LimitFacts {
  Limit files = {};
  Limit locked_bytes = {};
  Limit processes = {};
  bool has_fast_network = false;  // InfiniBand or RoCE; their buffers are locked memory
};

struct DiskFacts {
  std::filesystem::path folder;
  std::string problem = {};              // why nothing could be written there
  std::string file_system = {};          // "ext4", "nfs"; empty = of another kind
  bool remote = false;                   // NFS, Lustre, GPFS, CIFS, ...
  std::optional<double> mib_per_s = {};  // written and synced
  int64_t free_bytes = -1;
  bool locks = true;  // whether byte ranges can be locked, as SQLite and run folders do
};

struct SharedMemoryFacts {
  std::optional<int64_t> bytes = {};  // size of /dev/shm; nothing = there is none
  int64_t free_bytes = 0;
};

struct ClockFacts {
  bool known = false;
  bool synchronised = false;
  double most_error_s = 0;
};

struct KernelFacts {
  std::string release = {};       // "6.1.0-18-amd64"
  std::string cannot_watch = {};  // why_no_process_descriptors()
};

struct PortFacts {
  int port = 29'500;
  bool is_free = true;
};

struct DeviceFacts {
  std::string problem = {};  // DeviceReader::problem()
  bool mismatch = false;     // the driver's library and its kernel module differ
  NvmlVersions versions = {};
  std::vector<Nvml::Broken> broken = {};
  std::vector<Device> devices = {};
  std::vector<DeviceReading> readings = {};
  std::vector<MetricGap> gaps = {};
  PeerAccess peers = {};
  std::vector<std::string> selection_notes = {};  // remarks about CUDA_VISIBLE_DEVICES
  int num_hidden = 0;
};

std::vector<Finding> judge_devices(const DeviceFacts& facts);
std::vector<Finding> judge_host(const HostFacts& facts, const HostValues& values);
std::vector<Finding> judge_kernel(const KernelFacts& facts);
std::vector<Finding> judge_limits(const LimitFacts& facts);
std::vector<Finding> judge_shared_memory(const SharedMemoryFacts& facts);
std::vector<Finding> judge_disk(const DiskFacts& facts);
std::vector<Finding> judge_clock(const ClockFacts& facts);
std::vector<Finding> judge_port(const PortFacts& facts);

KernelFacts read_kernel();
LimitFacts read_limits(const DeviceSources& sources);
// Writes and syncs a file without a name, so that nothing is left whatever happens.
DiskFacts read_disk(const std::filesystem::path& folder);
SharedMemoryFacts read_shared_memory();
ClockFacts read_clock();
PortFacts read_port(int port);

// A running job: what it writes and what its devices do.
struct RunFacts {
  std::string name = {};
  bool held = false;                           // a process writes the run
  bool begun = false;                          // the run has a start row
  std::string end = {};                        // word of its end row; empty = none
  std::string failure = {};                    // sentence of the last failure
  ExitCode failure_code = ExitCode::PeerLost;  // code of the last failure; a killed run has none
  int64_t step = -1;
  int64_t total_steps = 0;
  double seconds_since_event = -1;
  double step_seconds = -1;                    // median of the last steps
  std::vector<double> rank_wait_seconds = {};  // by rank: sum over the last steps
  double window_seconds = 0;                   // time of the last steps together
  std::vector<std::string> warnings = {};      // the run's last few warnings
  std::optional<MemoryReport> memory = {};
};
RunFacts read_run_facts(const std::filesystem::path& run);
std::vector<Finding> judge_run(const RunFacts& facts);

// 0 when no finding blocks (with `strict`: or warns), else the code of the first that does.
int exit_code_of(const std::vector<Finding>& findings, bool strict);
std::string findings_text(const std::vector<Finding>& findings, bool color);
std::string findings_json(const std::vector<Finding>& findings);

}  // namespace convoy::monitor
