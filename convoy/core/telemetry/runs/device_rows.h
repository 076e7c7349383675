// SPDX-License-Identifier: Apache-2.0
//
// Reads a run's devices.csv (machine/monitor/watch/machine_reading.h writes it), or the form of the
// multi-GPU guide (farm/process/results/usage_csv.h): what a GPU or the host did at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace convoy::telemetry {

struct DeviceRow {
  int64_t wall_ns = 0;      // since 1970
  std::string host = {};    // empty = the file does not say
  std::string device = {};  // "gpu0", "host"
  std::vector<std::pair<std::string, double>> values =
      {};  // by column; unknown values are left out
};

class DeviceRowReader {
 public:
  // Reads one line. The heading comes first and again after each restart of the run. Returns
  // nullopt for a heading and for a line that does not match the heading.
  std::optional<DeviceRow> read(const std::string& line);

 private:
  std::vector<std::string> columns_;
};

}  // namespace convoy::telemetry
