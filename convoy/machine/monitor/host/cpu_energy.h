// SPDX-License-Identifier: Apache-2.0
//
// The energy that CPU packages and their memory took, by RAPL's counters in /sys/class/powercap.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace convoy::monitor {

// The counters wrap after some minutes of full load, so call read() more often. One thread.
class CpuEnergy {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CpuEnergy(const std::filesystem::path& sys = "/sys");

  // Joules of all packages since the first reading; empty if one package cannot be read any more.
  std::optional<double> read(Clock::time_point now = Clock::now());
  const std::string& reason() const { return reason_; }  // why reading fails; empty = it works

 private:
  struct Zone {
    std::filesystem::path counter;
    int64_t range_uj = 0;  // the counter wraps to 0 at this value
    int64_t last_uj = 0;
  };
  void add_zone(const std::filesystem::path& folder);

  std::vector<Zone> zones_;
  std::optional<Clock::time_point> last_read_;
  double joules_ = 0;
  std::string reason_;
};

}  // namespace convoy::monitor
