// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/device_rows.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "convoy/core/base/text_as.h"

namespace convoy::telemetry {
namespace {

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
std::optional<int64_t> wall_ns_of(const std::string& text) {
  std::tm time{};
  char between = 0;
  int end = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d%c%d:%d:%n", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &between, &time.tm_hour, &time.tm_min, &end) != 6 ||
      end == 0)
    return std::nullopt;
  double seconds = 0;
  if (std::from_chars(text.data() + end, text.data() + text.size(), seconds).ec != std::errc())
    return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<int64_t>(::timegm(&time)) * 1'000'000'000 + std::llround(seconds * 1e9);
}

}  // namespace

std::optional<DeviceRow> DeviceRowReader::read(const std::string& line) {
  const std::vector<std::string> cells = cells_of(line);
  if (columns_.empty() || cells[0] == columns_[0]) {
    columns_ = cells;
    return std::nullopt;
  }
  if (cells.size() != columns_.size()) return std::nullopt;
  const std::optional<int64_t> time = wall_ns_of(cells[0]);
  if (!time) return std::nullopt;
  DeviceRow row{.wall_ns = *time};
  for (size_t column = 1; column < cells.size(); ++column) {
    const std::string &name = columns_[column], &cell = cells[column];
    if (name == "device")
      row.device = cell;
    else if (name == "GPU_Index" && cell != "N/A" && !cell.empty())
      row.device = "gpu" + cell;
    else if (name == "host")
      row.host = cell;
    else if (const std::optional<double> value = text_as<double>(cell))
      row.values.emplace_back(name, *value);
  }
  if (row.device.empty()) row.device = "host";
  return row;
}

}  // namespace convoy::telemetry
