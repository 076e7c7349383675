// SPDX-License-Identifier: Apache-2.0
//
// Writes the readings of `convoy gpus watch`: to a file that grows by each reading and survives a
// kill, with a sidecar file that describes the columns and gives the reasons for blank columns; or
// to stdout. One thread.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/logs/append_file.h"
#include "convoy/machine/monitor/watch/machine_reading.h"

namespace convoy::monitor {

struct RecorderOptions {
  std::filesystem::path output = {};  // empty = stdout
  std::string format = "csv";         // csv, jsonl, prom
  std::string schema = "v1";          // for csv: v1, seed
  double interval_s = 1;
  ReadingIdentity identity = {};
};

class Recorder {
 public:
  // Continues a file with the same columns; a last line that was not finished is cut off. Throws
  // ConfigError for a file with other columns, IoError for a file that cannot be written.
  Recorder(RecorderOptions options, const Log& log);

  // One write per reading. A full disk loses readings and causes one warning.
  void add(const MachineReading& reading);
  // Writes FILE.meta.json: the watched devices, and the values that devices and host do not report,
  // with reasons. `summary` null: still watching.
  void write_meta(const DeviceReader& reader, const std::vector<HostGap>& host_gaps,
                  const nlohmann::ordered_json& summary);

 private:
  void add_prometheus(const MachineReading& reading) const;

  RecorderOptions options_;
  std::unique_ptr<telemetry::AppendFile> file_;
  bool header_on_stdout_ = false;
  std::string started_;
};

}  // namespace convoy::monitor
