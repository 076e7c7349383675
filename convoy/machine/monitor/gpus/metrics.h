// SPDX-License-Identifier: Apache-2.0
//
// The one list of the metrics of a device. Columns of files, names in Prometheus text, bounds of
// sane values and the terminal view are all made from it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::monitor {

enum class Metric {
  GpuUtil,
  MemBusy,
  SmActive,
  SmOccupancy,
  TensorActive,
  DramActive,
  Fp64Active,
  Fp32Active,
  Fp16Active,
  MemUsed,
  MemReserved,
  MemTotal,
  Power,
  PowerLimit,
  Energy,
  SmClock,
  MemClock,
  Temperature,
  MemTemperature,
  PerformanceState,
  PcieTx,
  PcieRx,
  NvlinkTx,
  NvlinkRx,
  ThrottlePowerNs,
  ThrottleSoftHeatNs,
  ThrottleHardHeatNs,
  ThrottleBrakeNs,
  EccCorrected,
  EccUncorrected,
  RemapPending,
  RemapFailed,
  Processes,
};
constexpr size_t kNumMetrics = static_cast<size_t>(Metric::Processes) + 1;

struct MetricFacts {
  Metric metric;
  const char* name;     // the column's name; its end is the unit
  const char* dcgm;     // name in dcgm-exporter; null = none
  double dcgm_scale;    // DCGM's unit = the unit of `name` times this
  int decimals;         // in files
  double most;          // a larger value is a sentinel or an error of the driver
  const char* meaning;  // one line of documentation
};

// Indexed by Metric.
const std::array<MetricFacts, kNumMetrics>& metric_table();
const MetricFacts& facts_of(Metric metric);

// A value that the device does not report is empty.
class MetricValues {
 public:
  const std::optional<double>& operator[](Metric metric) const {
    return values_[static_cast<size_t>(metric)];
  }
  std::optional<double>& operator[](Metric metric) { return values_[static_cast<size_t>(metric)]; }

 private:
  std::array<std::optional<double>, kNumMetrics> values_ = {};
};

// The bits of NVML's clock event reasons that slow down a GPU with work: "sw_power", "hw_thermal",
// ... Joined by '+'; "none" without one. Idle GPUs and clocks set by a user do not count.
std::string throttle_text(unsigned long long reasons);
// A clock event reason, and the counter of the time for which the reason held. Empty: it has no
// counter.
struct ThrottleKind {
  unsigned long long bit;
  const char* word;
  std::optional<Metric> counter;
};
const std::vector<ThrottleKind>& throttle_kinds();

}  // namespace convoy::monitor
