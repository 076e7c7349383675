// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/recorder.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/machine/monitor/gpus/json_or_null.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Throws ConfigError when the file has another first line. Cuts what follows the last line break.
void prepare_to_go_on(const fs::path& path, const std::string& header) {
  std::error_code absent;
  if (!fs::is_regular_file(path, absent) || fs::file_size(path, absent) == 0) return;
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (!header.empty() && !text.starts_with(header))
    throw ConfigError("the file has other columns, and adding to it would mix them",
                      {.file = path.string(), .hint = "name another --output, or move it away"});
  const size_t last = text.rfind('\n');
  const size_t whole = last == std::string_view::npos ? 0 : last + 1;
  if (whole < text.size()) fs::resize_file(path, whole);
}

}  // namespace

Recorder::Recorder(RecorderOptions options, const Log& log)
    : options_(std::move(options)), started_(utc_text(wall_clock_ns())) {
  if (options_.output.empty() || options_.format == "prom") return;
  const std::string header = options_.format != "csv"    ? ""
                             : options_.schema == "seed" ? seed_csv_header() + '\n'
                                                         : csv_header();
  prepare_to_go_on(options_.output, header);
  if (options_.output.has_parent_path()) {
    std::error_code failed;
    fs::create_directories(options_.output.parent_path(), failed);
  }
  if (!std::ofstream(options_.output, std::ios::app))
    throw IoError("the file cannot be written",
                  {.file = options_.output.string(),
                   .hint = "check free space and permissions, or name another --output"});
  file_ = std::make_unique<telemetry::AppendFile>(options_.output, log);
  std::error_code unknown;
  if (fs::is_regular_file(options_.output, unknown) && fs::file_size(options_.output, unknown) == 0)
    file_->append(header);
}

void Recorder::add(const MachineReading& reading) {
  if (options_.format == "prom" && !options_.output.empty()) {
    add_prometheus(reading);
    return;
  }
  const std::string rows = options_.format == "prom" ? prometheus_text(reading, options_.identity)
                           : options_.format == "jsonl" ? json_rows(reading, options_.identity)
                           : options_.schema == "seed"  ? seed_csv_rows(reading)
                                                        : csv_rows(reading, options_.identity);
  if (file_) {
    file_->append(rows);
    return;
  }
  if (!header_on_stdout_ && options_.format == "csv")
    fmt::print("{}", options_.schema == "seed" ? seed_csv_header() + '\n' : csv_header());
  header_on_stdout_ = true;
  fmt::print("{}", rows);
  if (std::fflush(stdout) != 0)
    throw IoError("stdout could not be written", {.hint = "is the pipe closed?"});
}

// Replaces the file as a whole, so that a collector never finds a part of it.
void Recorder::add_prometheus(const MachineReading& reading) const {
  const fs::path temporary = options_.output.string() + ".tmp";
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << prometheus_text(reading, options_.identity) << std::flush;
    if (!file)
      throw IoError("the file cannot be written",
                    {.file = temporary.string(),
                     .hint = "check free space and permissions, or name another --output"});
  }
  std::error_code failed;
  fs::rename(temporary, options_.output, failed);
  if (failed)
    throw IoError(fmt::format("the file cannot be replaced: {}", failed.message()),
                  {.file = options_.output.string(),
                   .hint = "check free space and permissions, or name another --output"});
}

void Recorder::write_meta(const DeviceReader& reader, const std::vector<HostGap>& host_gaps,
                          const ordered_json& summary) {
  if (options_.output.empty() || options_.format == "prom") return;
  const NvmlVersions versions = reader.versions();
  ordered_json devices = ordered_json::array();
  for (const Device& device : reader.devices())
    devices.push_back({{"index", device.gpu},
                       {"name", device.name},
                       {"uuid", device.uuid},
                       {"pci_address", device.pci_address},
                       {"mig", device.mig}});
  ordered_json gaps = ordered_json::array();
  for (const MetricGap& gap : reader.gaps())
    gaps.push_back({{"device", gap.device}, {"metric", gap.metric}, {"reason", gap.reason}});
  for (const HostGap& gap : host_gaps)
    gaps.push_back({{"device", "host"},
                    {"metric", host_metric_table()[static_cast<size_t>(gap.metric)].name},
                    {"reason", gap.reason}});
  ordered_json columns = ordered_json::object();
  for (const MetricFacts& facts : metric_table()) columns[facts.name] = facts.meaning;
  for (const HostMetricFacts& facts : host_metric_table()) columns[facts.name] = facts.meaning;
  const ordered_json whole = {{"schema", "convoy.monitor_meta.v1"},
                              {"format", options_.format},
                              {"csv_schema", options_.schema},
                              {"host", options_.identity.host},
                              {"run_id", text_or_null(options_.identity.run_id)},
                              {"started", started_},
                              {"interval_s", options_.interval_s},
                              {"driver", text_or_null(versions.driver)},
                              {"nvml", text_or_null(versions.nvml)},
                              {"why_no_gpu", text_or_null(reader.problem())},
                              {"devices", devices},
                              {"unavailable", gaps},
                              {"columns", columns},
                              {"summary", summary}};
  write_file_atomic(options_.output.string() + ".meta.json",
                    whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace convoy::monitor
