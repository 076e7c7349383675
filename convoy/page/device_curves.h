// SPDX-License-Identifier: Apache-2.0
//
// What the GPUs and the host of a run did, from its devices.csv (monitor/sample.h writes it), over seconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/page/curve_sketch.h"

namespace convoy::page {

class DeviceCurves {
 public:
  void forget();
  // A line of the file, its heading first. A line that does not fit it is left out.
  void add_line(const std::string& line);

  // By "gpu0/gpu_util_pct", "host/host_cpu_pct"; steps are seconds since the first look.
  const std::map<std::string, CurveSketch>& curves() const { return curves_; }

 private:
  std::vector<std::string> columns_;
  double begin_seconds_ = -1;  // since 1970
  std::map<std::string, CurveSketch> curves_;
};

}  // namespace convoy::page
