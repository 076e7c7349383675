// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/gpu_info.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/text_table.h"
#include "convoy/machine/monitor/gpus/json_or_null.h"

namespace convoy::monitor {
namespace {

std::string gib(int64_t mib) { return fmt::format("{:.1f} GiB", static_cast<double>(mib) / 1024); }

std::string figure(const MetricValues& values, Metric metric, const char* unit, int decimals = 0) {
  const auto& value = values[metric];
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : "N/A";
}

std::string device_table(const GpuInfo& info) {
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "NAME", "MEMORY", "USED", "BUSY", "TEMP", "POWER", "COMPUTE", "NUMA", "PCI"}};
  for (size_t at = 0; at < info.devices.size(); ++at) {
    const Device& device = info.devices[at];
    const DeviceReading& reading = info.readings[at];
    const MetricValues& values = reading.values;
    const std::string limit =
        values[Metric::PowerLimit] ? fmt::format("/{:.0f}", *values[Metric::PowerLimit]) : "";
    const std::string power =
        values[Metric::Power] ? fmt::format("{:.0f}{} W", *values[Metric::Power], limit) : "N/A";
    const bool lost = !reading.problem.empty();
    rows.push_back(
        {reading.label().substr(3), device.name,
         device.memory_bytes > 0 ? gib(device.memory_bytes >> 20) : "N/A",
         lost ? reading.problem : figure(values, Metric::MemUsed, " MiB"),
         figure(values, Metric::GpuUtil, " %"), figure(values, Metric::Temperature, " C"), power,
         device.compute_major > 0 ? fmt::format("{}.{}", device.compute_major, device.compute_minor)
                                  : "N/A",
         device.numa_node < 0 ? "N/A" : std::to_string(device.numa_node), device.pci_address});
  }
  return text_table(rows);
}

std::string host_text(const HostFacts& host) {
  std::string text =
      fmt::format("CPUs: {}{}{}, {}\n", host.cpus,
                  host.cores > 0 ? fmt::format(" on {}", counted(host.cores, "core")) : "",
                  host.sockets > 1 ? fmt::format(" in {} sockets", host.sockets) : "",
                  host.cpu_model.empty() ? "of an unknown model" : host.cpu_model);
  if (host.usable_cpus < host.cpus)
    text += fmt::format("  this process may use {} of them\n", host.usable_cpus);
  text += fmt::format("Memory: {}, {} available\n", gib(host.memory_mib), gib(host.available_mib));
  // Control groups may limit the memory of a process.
  if (host.usable_mib > 0 && host.usable_mib < host.available_mib - host.available_mib / 20)
    text += fmt::format("  this process may take {}\n", gib(host.usable_mib));
  for (const NumaNode& node : host.nodes)
    text += fmt::format("NUMA node {}: {}{}{}\n", node.id,
                        node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus,
                        node.memory_mib ? ", " + gib(*node.memory_mib) : "",
                        node.free_mib ? fmt::format(", {} free", gib(*node.free_mib)) : "");
  return text;
}

}  // namespace

std::string cuda_version_text(int version) {
  return version <= 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

GpuInfo read_gpu_info(const DeviceSources& sources,
                      const std::optional<std::set<std::string>>& uuids) {
  GpuInfo info;
  DeviceReader reader(sources, uuids);
  info.devices = reader.devices();
  info.readings = reader.read();
  info.versions = reader.versions();
  info.why_none = reader.problem();
  info.host = read_host_facts(sources);
  // An instance may be visible without its GPU.
  std::set<std::string> addresses;
  for (const Device& device : info.devices) addresses.insert(device.pci_address);
  info.num_gpus = static_cast<int>(addresses.size());
  info.broken = reader.broken();
  return info;
}

std::string gpu_info_text(const GpuInfo& info) {
  std::string text = fmt::format("Number of GPUs: {}\n", info.num_gpus);
  if (info.num_hidden > 0)
    text += fmt::format("  {} {} by {}; --all shows all\n",
                        info.num_hidden == 1 ? "1 more" : fmt::format("{} more", info.num_hidden),
                        info.num_hidden == 1 ? "is hidden" : "are hidden", info.hidden_by);
  else if (info.num_gpus == 0)
    text += fmt::format("  {}\n", info.why_none);
  for (const Nvml::Broken& broken : info.broken)
    text += broken.is_lost
                ? fmt::format("  GPU {} cannot be opened: {}\n", broken.index, broken.reason)
                : fmt::format("  GPU {} may not be used by this process: {}\n", broken.index,
                              broken.reason);
  if (!info.devices.empty()) text += "\n" + device_table(info);
  const bool nvidia = !info.versions.driver.empty();
  text += "\n";
  if (nvidia)
    text += fmt::format(
        "Driver: {}{}\n", info.versions.driver,
        info.versions.cuda > 0 ? ", runs CUDA up to " + cuda_version_text(info.versions.cuda) : "");
  return text + host_text(info.host);
}

namespace {

using nlohmann::ordered_json;

ordered_json gpu_json(const Device& device, const DeviceReading& reading) {
  ordered_json row = {
      {"index", device.gpu},
      {"label", reading.label()},
      {"name", device.name},
      {"uuid", device.uuid},
      {"vendor", device.vendor == Vendor::Amd ? "amd" : "nvidia"},
      {"pci_address", text_or_null(device.pci_address)},
      {"numa_node", number_or_null(device.numa_node, -1)},
      {"memory_mib", number_or_null(device.memory_bytes >> 20, 0)},
      {"compute_capability",
       device.compute_major > 0
           ? ordered_json(fmt::format("{}.{}", device.compute_major, device.compute_minor))
           : ordered_json()},
      {"mig", device.mig},
      {"problem", text_or_null(reading.problem)}};
  for (const MetricFacts& facts : metric_table()) {
    const auto& value = reading.values[facts.metric];
    if (value) row["now"][facts.name] = *value;
  }
  return row;
}

ordered_json host_json(const HostFacts& host) {
  ordered_json nodes = ordered_json::array();
  for (const NumaNode& node : host.nodes)
    nodes.push_back(
        {{"id", node.id},
         {"cpus", node.cpus},
         {"memory_mib", node.memory_mib ? ordered_json(*node.memory_mib) : ordered_json()},
         {"free_mib", node.free_mib ? ordered_json(*node.free_mib) : ordered_json()}});
  return {{"cpu_model", text_or_null(host.cpu_model)},
          {"sockets", host.sockets},
          {"cores", number_or_null(host.cores, 0)},
          {"cpus", host.cpus},
          {"usable_cpus", host.usable_cpus},
          {"memory_mib", host.memory_mib},
          {"available_mib", host.available_mib},
          {"usable_mib", number_or_null(host.usable_mib, 0)},
          {"swap_mib", host.swap_mib},
          {"numa_nodes", nodes}};
}

}  // namespace

std::string gpu_info_json(const GpuInfo& info) {
  ordered_json gpus = ordered_json::array();
  for (size_t at = 0; at < info.devices.size(); ++at)
    gpus.push_back(gpu_json(info.devices[at], info.readings[at]));
  ordered_json broken = ordered_json::array();
  for (const Nvml::Broken& each : info.broken)
    broken.push_back({{"index", each.index}, {"reason", each.reason}, {"is_lost", each.is_lost}});
  const ordered_json whole = {
      {"schema", "convoy.gpu_info.v1"},
      {"num_gpus", info.num_gpus},
      {"num_hidden", info.num_hidden},
      {"why_none", info.num_gpus > 0 ? ordered_json() : text_or_null(info.why_none)},
      {"gpus", gpus},
      {"broken", broken},
      {"driver", text_or_null(info.versions.driver)},
      {"nvml", text_or_null(info.versions.nvml)},
      {"cuda", text_or_null(cuda_version_text(info.versions.cuda))},
      {"host", host_json(info.host)}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace convoy::monitor
