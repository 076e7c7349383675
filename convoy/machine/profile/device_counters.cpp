// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/device_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "convoy/core/telemetry/runs/device_rows.h"

namespace convoy::profile {
namespace {

namespace fs = std::filesystem;

struct Shown {
  const char* column;
  const char* unit;
};
constexpr std::array<Shown, 8> kShown = {{{"gpu_util_pct", "%"},
                                          {"sm_active_pct", "%"},
                                          {"mem_used_mib", "MiB"},
                                          {"power_w", "W"},
                                          {"temp_c", "C"},
                                          {"sm_clock_mhz", "MHz"},
                                          {"host_cpu_pct", "%"},
                                          {"host_mem_used_mib", "MiB"}}};

using Values = std::vector<std::pair<int64_t, double>>;

// Readings are seconds apart, so the last one before the steps and the first one after them are
// included.
Values around(const Values& values, const Span& time) {
  const auto earlier = [](const auto& value, int64_t moment) { return value.first < moment; };
  auto begin = std::lower_bound(values.begin(), values.end(), time.begin_ns, earlier);
  auto end = std::lower_bound(begin, values.end(), time.end_ns, earlier);
  if (begin != values.begin()) --begin;
  if (end != values.end()) ++end;
  return {begin, end};
}

void add_file(const fs::path& file, const std::string& host, const Span& time,
              std::vector<DeviceCounter>& counters) {
  std::ifstream stream(file);
  telemetry::DeviceRowReader reader;
  std::map<std::string, std::map<std::string, Values>> by_device;
  for (std::string line; std::getline(stream, line);)
    if (const auto row = reader.read(line))
      for (const auto& [column, value] : row->values)
        by_device[row->device][column].emplace_back(row->wall_ns, value);
  for (auto& [device, columns] : by_device)
    for (const Shown& shown : kShown)
      if (const auto found = columns.find(shown.column); found != columns.end())
        counters.push_back(
            {.device = device == "host" ? host : fmt::format("{} of {}", device, host),
             .name = shown.column,
             .unit = shown.unit,
             .values = around(found->second, time)});
}

}  // namespace

std::vector<DeviceCounter> read_device_counters(const fs::path& run_folder, const std::string& host,
                                                const Span& time) {
  std::vector<DeviceCounter> counters;
  add_file(run_folder / "devices.csv", host, time, counters);
  constexpr std::string_view kBefore = "devices-", kAfter = ".csv";
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(run_folder / "logs", failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kBefore) && name.ends_with(kAfter)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    add_file(file, name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size()), time,
             counters);
  }
  return counters;
}

}  // namespace convoy::profile
