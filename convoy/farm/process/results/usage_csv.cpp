// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/usage_csv.h"

#include <fmt/format.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/machine/monitor/watch/machine_reading.h"

namespace convoy::process {
namespace {

bool begins_with_header(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line == UsageCsv::header();
}

}  // namespace

std::string UsageCsv::header() {
  return monitor::seed_csv_header() +
         ",Tokens_Per_Second,Running,Waiting,KV_Use,Prefill_Share,Decode_Share,Leases";
}

UsageCsv::UsageCsv(const std::filesystem::path& path)
    : path_(path), start_(std::chrono::steady_clock::now()) {
  const bool goes_on = begins_with_header(path);
  file_.open(path, goes_on ? std::ios::app : std::ios::trunc);
  if (!goes_on) file_ << header() << '\n' << std::flush;
  if (!file_)
    throw IoError("the usage of devices cannot be written",
                  {.file = path.string(), .hint = "check free space and permissions"});
}

void UsageCsv::add(std::span<const monitor::DeviceReading> devices, const UsageFigures& figures) {
  const std::string time =
      monitor::seed_csv_time({.wall_ns = wall_clock_ns(), .elapsed_s = seconds_since(start_)});
  const std::string work = fmt::format(
      "{:.1f},{},{},{:.3f},{:.3f},{:.3f},{}", figures.tokens_per_second, figures.running,
      figures.waiting, figures.kv_use, figures.prefill_share, figures.decode_share, figures.leases);
  bool any = false;
  for (const monitor::DeviceReading& device : devices) {
    if (device.mig) continue;
    any = true;
    file_ << time << ',' << monitor::seed_csv_device(device) << ',' << work << '\n';
  }
  if (!any) file_ << time << ',' << monitor::seed_csv_no_device() << ',' << work << '\n';
  file_.flush();
  if (!file_)
    throw IoError("the usage of devices cannot be written",
                  {.file = path_.string(), .hint = "check free space and permissions"});
}

}  // namespace convoy::process
