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

// The counters wrap after some minutes of full load: call read() more often than that. One thread.
class CpuEnergy {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CpuEnergy(const std::filesystem::path& sys = "/sys");

  // Joules of all packages since the first reading; nothing if one of them cannot be read any more.
  std::optional<double> read(Clock::time_point now = Clock::now());
  const std::string& reason() const { return reason_; }  // why nothing is read; empty = it is

 private:
  struct Zone {
    std::filesystem::path counter;
    int64_t range_uj = 0;  // the counter goes on at 0 after this
    int64_t last_uj = 0;
  };
  void add_zone(const std::filesystem::path& folder);

  std::vector<Zone> zones_;
  std::optional<Clock::time_point> last_read_;
  double joules_ = 0;
  std::string reason_;
};

}  // namespace convoy::monitor
