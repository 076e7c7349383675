// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/machine_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/csv_cell.h"
#include "convoy/core/base/time_text.h"
#include "convoy/machine/monitor/gpus/json_or_null.h"

namespace convoy::monitor {
namespace {

constexpr const char* kNotAvailable = "N/A";
constexpr int64_t kNsOfSecond = 1'000'000'000;

}  // namespace

std::string utc_text(int64_t wall_ns) {
  return fmt::format("{}.{:03}Z", utc_time_text(wall_ns / kNsOfSecond, "%Y-%m-%dT%H:%M:%S"),
                     wall_ns % kNsOfSecond / 1'000'000);
}

namespace {

std::string throttle_cell(const DeviceReading& device) {
  return device.throttle_reasons ? throttle_text(*device.throttle_reasons) : "";
}

std::string xid_cell(const DeviceReading& device) {
  return fmt::format("{}", fmt::join(device.xids, "+"));
}

std::string seed_cell(const std::optional<double>& value, int decimals = 0) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : kNotAvailable;
}

// Prometheus: backslash, quote and line break are escaped.
std::string label_value(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '\n') {
      escaped += "\\n";
      continue;
    }
    if (letter == '\\' || letter == '"') escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string gpu_labels(const DeviceReading& device, const ReadingIdentity& identity) {
  std::string labels = fmt::format(
      R"(gpu="{}",UUID="{}",pci_bus_id="{}",device="nvidia{}",modelName="{}",Hostname="{}")",
      device.index, label_value(device.uuid), device.pci_address, device.index,
      label_value(device.name), label_value(identity.host));
  if (device.mig) labels += fmt::format(R"(,GPU_I_ID="{}")", device.gpu_instance);
  if (!identity.run_id.empty()) labels += fmt::format(R"(,run="{}")", label_value(identity.run_id));
  return labels;
}

}  // namespace

std::string csv_header() {
  std::string line = "timestamp,elapsed_s,run_id,host,rank,device,uuid,name,state";
  for (const MetricFacts& facts : metric_table()) line += fmt::format(",{}", facts.name);
  line += ",throttle,xid";
  for (const HostMetricFacts& facts : host_metric_table()) line += fmt::format(",{}", facts.name);
  return line + '\n';
}

std::string csv_rows(const MachineReading& reading, const ReadingIdentity& identity) {
  const std::string begin =
      fmt::format("{},{:.3f},{},{},{}", utc_text(reading.wall_ns), reading.elapsed_s,
                  csv_cell(identity.run_id), csv_cell(identity.host), csv_cell(identity.rank));
  std::string text;
  auto out = std::back_inserter(text);
  for (const DeviceReading& device : reading.devices) {
    fmt::format_to(out, "{},{},{},{},{}", begin, device.label(), device.uuid, csv_cell(device.name),
                   csv_cell(device.problem.empty() ? "ok" : device.problem));
    for (const MetricFacts& facts : metric_table()) {
      text += ',';
      if (const auto& value = device.values[facts.metric])
        fmt::format_to(out, "{:.{}f}", *value, facts.decimals);
    }
    fmt::format_to(out, ",{},{}", throttle_cell(device), xid_cell(device));
    text.append(kNumHostMetrics, ',');
    text += '\n';
  }
  fmt::format_to(out, "{},host,,,ok", begin);
  text.append(kNumMetrics + 2, ',');
  for (const HostMetricFacts& facts : host_metric_table()) {
    text += ',';
    if (const auto& value = reading.host[facts.metric])
      fmt::format_to(out, "{:.{}f}", *value, facts.decimals);
  }
  return text + '\n';
}

std::string seed_csv_header() {
  return "Timestamp,Elapsed,GPU_Index,GPU_Name,Temperature,GPU_Utilization,Memory_Utilization,"
         "Memory_Used,Memory_Total,Power_Draw";
}

std::string seed_csv_time(const MachineReading& reading) {
  return fmt::format("{},{:.2f}", local_time_text(reading.wall_ns / kNsOfSecond),
                     reading.elapsed_s);
}

std::string seed_csv_device(const DeviceReading& device) {
  const MetricValues& values = device.values;
  return fmt::format("{},{},{},{},{},{},{},{}", device.index, csv_cell(device.name),
                     seed_cell(values[Metric::Temperature]), seed_cell(values[Metric::GpuUtil]),
                     seed_cell(values[Metric::MemBusy]), seed_cell(values[Metric::MemUsed]),
                     seed_cell(values[Metric::MemTotal]), seed_cell(values[Metric::Power], 2));
}

std::string seed_csv_no_device() { return "N/A,No GPU found,N/A,N/A,N/A,N/A,N/A,N/A"; }

std::string seed_csv_rows(const MachineReading& reading) {
  const std::string time = seed_csv_time(reading);
  std::string text;
  for (const DeviceReading& device : reading.devices)
    if (!device.mig) text += fmt::format("{},{}\n", time, seed_csv_device(device));
  return text.empty() ? fmt::format("{},{}\n", time, seed_csv_no_device()) : text;
}

std::string json_rows(const MachineReading& reading, const ReadingIdentity& identity) {
  using nlohmann::ordered_json;
  ordered_json begin = {{"schema", "convoy.monitor.v1"},  {"timestamp", utc_text(reading.wall_ns)},
                        {"elapsed_s", reading.elapsed_s}, {"run_id", text_or_null(identity.run_id)},
                        {"host", identity.host},          {"rank", text_or_null(identity.rank)}};
  std::string text;
  const auto add = [&](const ordered_json& row) {
    text += row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
  };
  for (const DeviceReading& device : reading.devices) {
    ordered_json row = begin;
    row["device"] = device.label();
    row["uuid"] = device.uuid;
    row["name"] = device.name;
    row["state"] = device.problem.empty() ? "ok" : device.problem;
    for (const MetricFacts& facts : metric_table()) {
      const auto& value = device.values[facts.metric];
      row[facts.name] = value ? ordered_json(*value) : ordered_json();
    }
    row["throttle"] = text_or_null(throttle_cell(device));
    row["xid"] = device.xids;
    add(row);
  }
  begin["device"] = "host";
  for (const HostMetricFacts& facts : host_metric_table()) {
    const auto& value = reading.host[facts.metric];
    begin[facts.name] = value ? ordered_json(*value) : ordered_json();
  }
  add(begin);
  return text;
}

std::string prometheus_text(const MachineReading& reading, const ReadingIdentity& identity) {
  std::string text;
  auto out = std::back_inserter(text);
  std::vector<std::string> labels;
  for (const DeviceReading& device : reading.devices)
    labels.push_back(gpu_labels(device, identity));
  const auto family = [&](const char* name, const char* kind, const char* meaning,
                          auto&& value_of) {
    bool begun = false;
    for (size_t at = 0; at < reading.devices.size(); ++at) {
      const std::optional<double> value = value_of(reading.devices[at]);
      if (!value) continue;
      if (!begun) fmt::format_to(out, "# HELP {} {}\n# TYPE {} {}\n", name, meaning, name, kind);
      begun = true;
      fmt::format_to(out, "{}{{{}}} {}\n", name, labels[at], *value);
    }
  };
  const auto is_counter = [](Metric metric) {
    return metric == Metric::Energy ||
           (metric >= Metric::ThrottlePowerNs && metric <= Metric::EccUncorrected);
  };
  for (const MetricFacts& facts : metric_table()) {
    const std::string own = fmt::format("convoy_gpu_{}", facts.name);
    family(facts.dcgm == nullptr ? own.c_str() : facts.dcgm,
           is_counter(facts.metric) ? "counter" : "gauge", facts.meaning,
           [&](const DeviceReading& device) -> std::optional<double> {
             const auto& value = device.values[facts.metric];
             if (!value) return std::nullopt;
             return *value * (facts.dcgm == nullptr ? 1 : facts.dcgm_scale);
           });
  }
  family("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "NVML's bits for the reasons of lower clocks",
         [](const DeviceReading& device) -> std::optional<double> {
           if (!device.throttle_reasons) return std::nullopt;
           return static_cast<double>(*device.throttle_reasons);
         });
  family("DCGM_FI_DEV_XID_ERRORS", "gauge", "the last Xid since the previous file",
         [](const DeviceReading& device) -> std::optional<double> {
           if (device.xids.empty()) return std::nullopt;
           return static_cast<double>(device.xids.back());
         });
  family("convoy_gpu_answers", "gauge", "0: the driver no longer reports on it",
         [](const DeviceReading& device) -> std::optional<double> {
           return device.problem.empty() ? 1 : 0;
         });
  const std::string host = fmt::format(R"(Hostname="{}")", label_value(identity.host));
  for (const HostMetricFacts& facts : host_metric_table())
    if (const auto& value = reading.host[facts.metric])
      fmt::format_to(out, "# HELP {} {}\n# TYPE {} {}\n{}{{{}}} {}\n", facts.prometheus,
                     facts.meaning, facts.prometheus,
                     facts.metric == HostMetric::CpuEnergy ? "counter" : "gauge", facts.prometheus,
                     host, *value);
  return text;
}

}  // namespace convoy::monitor
