// SPDX-License-Identifier: Apache-2.0
//
// One reading of the host and its GPUs, and the forms in which it is written: CSV of two schemas,
// JSON lines, Prometheus text. Plain functions of a reading.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/host/host.h"

namespace convoy::monitor {

struct MachineReading {
  int64_t wall_ns = 0;   // since 1970
  double elapsed_s = 0;  // since the first reading, monotonic
  std::vector<DeviceReading> devices = {};
  HostValues host = {};
};

// The program and host that measure.
struct ReadingIdentity {
  std::string run_id = {};  // empty = unknown
  std::string host = {};
  std::string rank = {};  // empty = the program is no rank
};

// A row per device, and one for the host (device "host"). Unknown values are blank. Lines end with
// \n.
std::string csv_header();
std::string csv_rows(const MachineReading& reading, const ReadingIdentity& identity);

// The columns of the multi-GPU guide's monitor_gpu.py, which writes N/A for unknown values.
// Contains only whole GPUs.
std::string seed_csv_header();  // without a line break: other columns may follow
std::string seed_csv_time(const MachineReading& reading);
std::string seed_csv_device(const DeviceReading& device);
std::string seed_csv_no_device();
std::string seed_csv_rows(const MachineReading& reading);

// One object per device, and one for the host; unknown values are null.
std::string json_rows(const MachineReading& reading, const ReadingIdentity& identity);

// Text for node_exporter's text file collector, with dcgm-exporter's name for each metric that
// dcgm-exporter has.
std::string prometheus_text(const MachineReading& reading, const ReadingIdentity& identity);

// A time such as "2026-01-31T12:00:00.000Z".
std::string utc_text(int64_t wall_ns);

}  // namespace convoy::monitor
