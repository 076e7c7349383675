// SPDX-License-Identifier: Apache-2.0
//
// Curves of the GPUs of one host and of the host itself during a run, over seconds, from its
// devices.csv (written by machine/monitor/watch/machine_reading.h and
// farm/process/results/usage_csv.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "convoy/apps/page/curve_sketch.h"
#include "convoy/core/telemetry/runs/device_rows.h"

namespace convoy::page {

class DeviceCurves {
 public:
  void forget();
  // Adds a line of the file, whose heading comes first. Skips a line that does not match the
  // heading.
  void add_line(const std::string& line);

  // Curves by name: "gpu0/gpu_util_pct", "host/host_cpu_pct". Steps are milliseconds since the
  // first sample.
  const std::map<std::string, CurveSketch>& curves() const { return curves_; }
  const std::string& host() const { return host_; }  // name in the file; empty = none
  // Seconds since 1970; negative = no sample yet.
  double begin_seconds() const { return static_cast<double>(begin_ns_) / 1e9; }

 private:
  telemetry::DeviceRowReader rows_;
  std::string host_;
  int64_t begin_ns_ = -1;
  std::map<std::string, CurveSketch> curves_;
};

}  // namespace convoy::page
