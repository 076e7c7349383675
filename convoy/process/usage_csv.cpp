// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/usage_csv.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <optional>

#include "convoy/base/error.h"

namespace convoy::process {
namespace {

constexpr const char* kNotAvailable = "N/A";

template <class Number>
std::string cell(const std::optional<Number>& value) {
  if (!value) return kNotAvailable;
  if constexpr (std::is_floating_point_v<Number>) return fmt::format("{:.2f}", *value);
  return fmt::format("{}", *value);
}

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

// RFC 4180.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"') result += '"';
    result += letter;
  }
  return result + '"';
}

std::string device_cells(const launch::DeviceReading& device) {
  return fmt::format("{},{},{},{},{},{},{},{}", device.index, quoted(device.name),
                     cell(device.temperature_celsius), cell(device.busy_percent),
                     cell(device.memory_busy_percent), cell(device.memory_used_mib),
                     cell(device.memory_total_mib), cell(device.power_watts));
}

bool begins_with_header(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line == UsageCsv::header();
}

}  // namespace

std::string UsageCsv::header() {
  return "Timestamp,Elapsed,GPU_Index,GPU_Name,Temperature,GPU_Utilization,Memory_Utilization,"
         "Memory_Used,Memory_Total,Power_Draw,Tokens_Per_Second,Running,Waiting,KV_Use,"
         "Prefill_Share,Decode_Share,Leases";
}

UsageCsv::UsageCsv(const std::filesystem::path& path)
    : path_(path), start_(std::chrono::steady_clock::now()) {
  const bool goes_on = begins_with_header(path);
  file_.open(path, goes_on ? std::ios::app : std::ios::trunc);
  if (!goes_on) file_ << header() << '\n' << std::flush;
  if (!file_) throw IoError("the usage of devices can not be written", {.file = path.string()});
}

void UsageCsv::add(std::span<const launch::DeviceReading> devices, const UsageFigures& figures) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::string time = fmt::format("{},{:.2f}", local_time(), elapsed.count());
  const std::string work = fmt::format(
      "{:.1f},{},{},{:.3f},{:.3f},{:.3f},{}", figures.tokens_per_second, figures.running,
      figures.waiting, figures.kv_use, figures.prefill_share, figures.decode_share, figures.leases);
  for (const launch::DeviceReading& device : devices)
    file_ << time << ',' << device_cells(device) << ',' << work << '\n';
  if (devices.empty())
    file_ << time << ",N/A,No GPU found,N/A,N/A,N/A,N/A,N/A,N/A," << work << '\n';
  file_.flush();
  if (!file_) throw IoError("the usage of devices can not be written", {.file = path_.string()});
}

}  // namespace convoy::process
