// SPDX-License-Identifier: Apache-2.0
//
// The summary of all readings of a watch, device by device: figures, throttling, energy, and the
// balance of work between GPUs. Takes bounded memory, however long the watch lasts. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/machine/monitor/watch/machine_reading.h"

namespace convoy::monitor {

// Statistics of a stream of numbers.
class RunningFigure {
 public:
  void add(double value);
  bool empty() const { return count_ == 0; }
  double least() const { return least_; }
  double most() const { return most_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // The 95th percentile. Exact up to 8192 values, then computed from every second value, every
  // fourth, ...
  double p95() const;

 private:
  int64_t count_ = 0;
  double sum_ = 0, least_ = 0, most_ = 0;
  std::vector<float> kept_;
  int64_t stride_ = 1;  // one of this many values is kept
};

// The cost of the readings themselves.
struct SamplerCost {
  int64_t ticks = 0;
  double seconds = 0;
  double cpu_seconds = 0;
  double longest_tick_ms = 0;
  double mean_tick_ms = 0;
};

class Summary {
 public:
  void add(const MachineReading& reading);

  // The summary as text for a person, and as JSON.
  std::string text(const SamplerCost& cost) const;
  nlohmann::ordered_json json(const SamplerCost& cost) const;
  // One sentence about the balance of load between GPUs, or, before that, about a lost GPU; empty
  // with fewer than two GPUs that report their load.
  std::string balance() const;

 private:
  struct DeviceSums {
    std::string name;
    std::string uuid;
    bool mig = false;
    RunningFigure util, sm_active, memory, power, temperature;
    std::map<std::string, double> throttled_s;  // by ThrottleKind::word
    std::map<Metric, double> counters;          // last counter of each ThrottleKind
    std::optional<double> energy_begin, energy_end;
    double power_integral_j = 0;
    std::optional<double> last_power;
    double memory_total_mib = 0;
    std::vector<uint64_t> xids;
    std::string problem;  // the last problem
    double silent_s = 0;
  };
  double joules(const DeviceSums& sums) const;
  static std::string contradiction(const DeviceSums& sums);  // a sentence; empty: the figures agree

  std::vector<std::string> order_;  // labels as they came
  std::map<std::string, DeviceSums> devices_;
  std::map<HostMetric, RunningFigure> host_;
  std::optional<double> cpu_energy_begin_, cpu_energy_end_;
  double last_elapsed_s_ = 0;
  bool begun_ = false;
};

}  // namespace convoy::monitor
