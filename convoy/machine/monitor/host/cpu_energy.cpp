// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/host/cpu_energy.h"

#include <fmt/format.h>

#include <fstream>

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

// More power than any package draws. It gives the time within which a counter cannot wrap twice.
constexpr double kMostWatts = 1000;

std::string word_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::optional<int64_t> whole_number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

}  // namespace

// Zones are intel-rapl:PACKAGE and, in it, intel-rapl:PACKAGE:PART (AMD's too). A package's figure
// includes cores and uncore, but not memory. psys counts all of them again, and so do the zones of
// intel-rapl-mmio.
CpuEnergy::CpuEnergy(const fs::path& sys) {
  std::error_code absent;
  const fs::path folder = sys / "class/powercap";
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("intel-rapl:")) continue;
    const std::string what = word_in(entry.path() / "name");
    if (what.starts_with("package") || what == "dram") add_zone(entry.path());
  }
  if (zones_.empty() && reason_.empty())
    reason_ = fmt::format("the kernel shows no energy counter of this CPU ({})", folder.string());
}

void CpuEnergy::add_zone(const fs::path& folder) {
  Zone zone{.counter = folder / "energy_uj"};
  zone.range_uj = whole_number_in(folder / "max_energy_range_uj").value_or(0);
  if (zone.range_uj > 0 && whole_number_in(zone.counter)) {
    zones_.push_back(zone);
    return;
  }
  reason_ =
      fmt::format("{} cannot be read (the kernel shows it to root alone)", zone.counter.string());
}

std::optional<double> CpuEnergy::read(Clock::time_point now) {
  if (!reason_.empty()) return std::nullopt;
  const double seconds = last_read_ ? std::chrono::duration<double>(now - *last_read_).count() : 0;
  for (Zone& zone : zones_) {
    const std::optional<int64_t> energy_uj = whole_number_in(zone.counter);
    if (!energy_uj) {
      reason_ = fmt::format("{} cannot be read any more", zone.counter.string());
      return std::nullopt;
    }
    if (static_cast<double>(zone.range_uj) < seconds * kMostWatts * 1e6) {
      reason_ = fmt::format("{:.0f} s passed between two readings; {} may have wrapped twice",
                            seconds, zone.counter.string());
      return std::nullopt;
    }
    const int64_t grown_uj = *energy_uj >= zone.last_uj ? *energy_uj - zone.last_uj
                                                        : zone.range_uj - zone.last_uj + *energy_uj;
    if (last_read_) joules_ += static_cast<double>(grown_uj) * 1e-6;
    zone.last_uj = *energy_uj;
  }
  last_read_ = now;
  return joules_;
}

}  // namespace convoy::monitor
