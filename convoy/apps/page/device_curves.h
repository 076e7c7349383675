// SPDX-License-Identifier: Apache-2.0
//
// What the GPUs of one host and the host itself did during a run, from its devices.csv
// (machine/monitor/sample.h and farm/process/usage_csv.h write it), over seconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "convoy/apps/page/curve_sketch.h"
#include "convoy/core/telemetry/device_rows.h"

namespace convoy::page {

class DeviceCurves {
 public:
  void forget();
  // A line of the file, its heading first. A line that does not fit it is left out.
  void add_line(const std::string& line);

  // By "gpu0/gpu_util_pct", "host/host_cpu_pct"; steps are milliseconds since the first look.
  const std::map<std::string, CurveSketch>& curves() const { return curves_; }
  const std::string& host() const { return host_; }  // as the file names it; empty = it does not
  // Since 1970; negative = no look yet.
  double begin_seconds() const { return static_cast<double>(begin_ns_) / 1e9; }

 private:
  telemetry::DeviceRowReader rows_;
  std::string host_;
  int64_t begin_ns_ = -1;
  std::map<std::string, CurveSketch> curves_;
};

}  // namespace convoy::page
