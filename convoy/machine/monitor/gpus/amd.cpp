// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/amd.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "convoy/core/base/printable_text.h"
#include "convoy/core/base/text_as.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kAmdVendor = 0x1002;

std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  double number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Reads lines of "name value".
std::map<std::string, uint64_t> properties_of(const fs::path& path) {
  std::map<std::string, uint64_t> properties;
  std::ifstream file(path);
  std::string name;
  for (uint64_t value = 0; file >> name >> value;) properties[name] = value;
  return properties;
}

uint64_t value_or(const std::map<std::string, uint64_t>& properties, const char* name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

// KFD gives the bus, slot and function in 16 bits.
std::string address_of(const std::map<std::string, uint64_t>& properties) {
  const uint64_t place = value_or(properties, "location_id");
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", value_or(properties, "domain"), place >> 8 & 0xff,
                     place >> 3 & 0x1f, place & 7);
}

int64_t memory_of(const fs::path& node) {
  int64_t bytes = 0;
  std::error_code absent;
  for (const auto& bank : fs::directory_iterator(node / "mem_banks", absent)) {
    const auto properties = properties_of(bank.path() / "properties");
    constexpr uint64_t kPublic = 1, kPrivate = 2;  // HSA_HEAPTYPE_FRAME_BUFFER_*
    const uint64_t heap = value_or(properties, "heap_type");
    if (heap == kPublic || heap == kPrivate)
      bytes += static_cast<int64_t>(value_or(properties, "size_in_bytes"));
  }
  return bytes;
}

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  line.erase(line.find_last_not_of(" \t\r") + 1);
  return printable_text(line);
}

// gfx_target_version 90402 is gfx942: major, two digits of the minor, two of the step (in
// hexadecimal).
std::string gfx_name(uint64_t version) {
  return fmt::format("gfx{}{}{:x}", version / 10000, version / 100 % 100, version % 100);
}

fs::path hwmon_of(const fs::path& device) {
  std::error_code absent;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(device / "hwmon", absent))
    found.push_back(entry.path());
  return found.empty() ? fs::path() : *std::min_element(found.begin(), found.end());
}

}  // namespace

std::vector<Gpu> list_amd_gpus(const DeviceSources& sources) {
  std::map<int, fs::path> nodes;
  std::error_code absent;
  for (const auto& entry :
       fs::directory_iterator(sources.sys / "class/kfd/kfd/topology/nodes", absent)) {
    if (const auto number = text_as<int>(entry.path().filename().string()))
      nodes[*number] = entry.path();
  }
  std::vector<Gpu> gpus;
  for (const auto& [number, node] : nodes) {
    const auto properties = properties_of(node / "properties");
    // CPUs are nodes without SIMD units; a GPU that this process may not use has an unreadable
    // file, or id 0.
    if (value_or(properties, "simd_count") == 0) continue;
    const auto id = number_in(node / "gpu_id");
    if (!id || *id == 0) continue;
    const uint64_t vendor = value_or(properties, "vendor_id");
    if (vendor != 0 && vendor != kAmdVendor) continue;
    Gpu gpu;
    Device& device = gpu.device;
    device.vendor = Vendor::Amd;
    device.gpu = static_cast<int>(gpus.size());
    device.pci_address = address_of(properties);
    device.uuid = fmt::format("GPU-{:016x}", value_or(properties, "unique_id"));
    const std::string product =
        line_of(sources.sys / "bus/pci/devices" / device.pci_address / "product_name");
    const std::string gfx = gfx_name(value_or(properties, "gfx_target_version"));
    device.name = product.empty() ? "AMD " + gfx : product;
    device.memory_bytes = memory_of(node);
    device.numa_node = numa_node_of(sources.sys, device.pci_address);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

DeviceReading read_amd_gpu(const DeviceSources& sources, const Device& device) {
  DeviceReading reading{.index = device.gpu,
                        .name = device.name,
                        .uuid = device.uuid,
                        .pci_address = device.pci_address};
  const fs::path folder = sources.sys / "bus/pci/devices" / device.pci_address;
  const fs::path sensors = hwmon_of(folder);
  const auto put = [&](Metric metric, const fs::path& path, double scale) {
    const auto number = number_in(path);
    if (number && *number * scale >= 0 && *number * scale <= facts_of(metric).most)
      reading.values[metric] = *number * scale;
  };
  constexpr double kMib = 1.0 / (1 << 20);
  put(Metric::GpuUtil, folder / "gpu_busy_percent", 1);
  put(Metric::MemBusy, folder / "mem_busy_percent", 1);
  put(Metric::MemUsed, folder / "mem_info_vram_used", kMib);
  put(Metric::MemTotal, folder / "mem_info_vram_total", kMib);
  if (sensors.empty()) return reading;
  put(Metric::Power, sensors / "power1_input", 1e-6);
  if (!reading.values[Metric::Power]) put(Metric::Power, sensors / "power1_average", 1e-6);
  put(Metric::PowerLimit, sensors / "power1_cap", 1e-6);
  // temp1 is at the edge of the chip, which some boards lack; temp2 is at the hottest place, temp3
  // in the memory.
  put(Metric::Temperature, sensors / "temp1_input", 1e-3);
  if (!reading.values[Metric::Temperature]) put(Metric::Temperature, sensors / "temp2_input", 1e-3);
  put(Metric::MemTemperature, sensors / "temp3_input", 1e-3);
  put(Metric::SmClock, sensors / "freq1_input", 1e-6);
  put(Metric::MemClock, sensors / "freq2_input", 1e-6);
  return reading;
}

bool amd_supports(Metric metric) {
  switch (metric) {
    case Metric::GpuUtil:
    case Metric::MemBusy:
    case Metric::MemUsed:
    case Metric::MemTotal:
    case Metric::Power:
    case Metric::PowerLimit:
    case Metric::Temperature:
    case Metric::MemTemperature:
    case Metric::SmClock:
    case Metric::MemClock:
      return true;
    default:
      return false;
  }
}

}  // namespace convoy::monitor
