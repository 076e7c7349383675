// SPDX-License-Identifier: Apache-2.0
#include "convoy/page/device_curves.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>

namespace convoy::page {
namespace {

// Those that people look at, by their columns; the file has more. The second form is the multi-GPU guide's, which
// `convoy process` writes with figures of its engines behind.
const std::map<std::string, std::string> kShown = {{"gpu_util_pct", "gpu_util_pct"},
                                                   {"sm_active_pct", "sm_active_pct"},
                                                   {"mem_used_mib", "mem_used_mib"},
                                                   {"power_w", "power_w"},
                                                   {"temp_c", "temp_c"},
                                                   {"host_cpu_pct", "host_cpu_pct"},
                                                   {"host_mem_used_mib", "host_mem_used_mib"},
                                                   {"job_cpu_cores", "job_cpu_cores"},
                                                   {"GPU_Utilization", "gpu_util_pct"},
                                                   {"Memory_Used", "mem_used_mib"},
                                                   {"Power_Draw", "power_w"},
                                                   {"Temperature", "temp_c"},
                                                   {"Tokens_Per_Second", "tokens_per_second"},
                                                   {"Running", "requests_running"},
                                                   {"Waiting", "requests_waiting"},
                                                   {"KV_Use", "kv_use"}};
const std::set<std::string> kOfEngines = {"tokens_per_second", "requests_running",
                                          "requests_waiting", "kv_use"};

// RFC 4180, without line breaks inside a cell.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char letter = line[at];
    if (letter == '"' && quoted && at + 1 < line.size() && line[at + 1] == '"') {
      cells.back() += line[++at];
    } else if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      cells.emplace_back();
    } else if (letter != '\r') {
      cells.back() += letter;
    }
  }
  return cells;
}

// "2026-01-31T12:00:00.000Z", or with a blank between day and hour.
std::optional<double> seconds_of(const std::string& text) {
  std::tm time{};
  double seconds = 0;
  char between = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d%c%d:%d:%lf", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &between, &time.tm_hour, &time.tm_min, &seconds) != 7)
    return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time)) + seconds;
}

}  // namespace

void DeviceCurves::forget() { *this = {}; }

const std::string& DeviceCurves::cell(const std::vector<std::string>& cells,
                                      const char* column) const {
  static const std::string none;
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end() ? none : cells[static_cast<size_t>(found - columns_.begin())];
}

std::string DeviceCurves::device_of(const std::vector<std::string>& cells) const {
  if (const std::string& device = cell(cells, "device"); !device.empty()) return device;
  const std::string& index = cell(cells, "GPU_Index");
  return index.empty() || index == "N/A" ? "host" : "gpu" + index;
}

void DeviceCurves::add_line(const std::string& line) {
  const std::vector<std::string> cells = cells_of(line);
  if (columns_.empty()) {
    columns_ = cells;
    return;
  }
  if (cells.size() != columns_.size()) return;
  const auto time = seconds_of(cells[0]);
  if (!time) return;
  if (begin_seconds_ < 0) begin_seconds_ = *time;
  if (host_.empty()) host_ = cell(cells, "host");
  const std::string device = device_of(cells);
  for (size_t column = 0; column < cells.size(); ++column) {
    const auto shown = kShown.find(columns_[column]);
    double value = 0;
    const char* const end = cells[column].data() + cells[column].size();
    if (shown == kShown.end() || cells[column].empty() ||
        std::from_chars(cells[column].data(), end, value).ptr != end)
      continue;
    const std::string& name = shown->second;
    curves_[(kOfEngines.contains(name) ? "host" : device) + "/" + name].add(
        std::llround(1000 * (*time - begin_seconds_)), value);
  }
}

}  // namespace convoy::page
