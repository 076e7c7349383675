// SPDX-License-Identifier: Apache-2.0
#include "convoy/page/device_curves.h"

#include <charconv>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>

namespace convoy::page {
namespace {

// Those that people look at; the file has more.
const std::set<std::string> kShown = {"gpu_util_pct",     "sm_active_pct", "mem_used_mib",
                                      "power_w",          "temp_c",        "host_cpu_pct",
                                      "host_mem_used_mib"};

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

// "2026-01-31T12:00:00.000Z".
std::optional<double> seconds_of(const std::string& text) {
  std::tm time{};
  double seconds = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%lfZ", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &time.tm_hour, &time.tm_min, &seconds) != 6)
    return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time)) + seconds;
}

}  // namespace

void DeviceCurves::forget() {
  columns_.clear();
  begin_seconds_ = -1;
  curves_.clear();
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
  std::string device;
  for (size_t column = 0; column < cells.size(); ++column)
    if (columns_[column] == "device") device = cells[column];
  for (size_t column = 0; column < cells.size(); ++column) {
    double value = 0;
    const char* const end = cells[column].data() + cells[column].size();
    if (!kShown.contains(columns_[column]) || cells[column].empty() ||
        std::from_chars(cells[column].data(), end, value).ptr != end)
      continue;
    curves_[device + "/" + columns_[column]].add(static_cast<int64_t>(*time - begin_seconds_),
                                                 value);
  }
}

}  // namespace convoy::page
