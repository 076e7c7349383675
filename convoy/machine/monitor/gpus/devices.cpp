// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/devices.h"

#include <fstream>

#include "convoy/machine/monitor/gpus/amd.h"
#include "convoy/machine/monitor/gpus/nvml.h"

namespace convoy::monitor {

DeviceSources device_sources(const std::map<std::string, std::string>& environment) {
  DeviceSources sources;
  const auto named = environment.find("CONVOY_NVML_LIBRARY");
  if (named != environment.end() && !named->second.empty()) sources.nvml_library = named->second;
  const auto root = environment.find("CONVOY_HOST_ROOT");
  if (root != environment.end() && !root->second.empty()) {
    sources.sys = std::filesystem::path(root->second) / "sys";
    sources.proc = std::filesystem::path(root->second) / "proc";
  }
  return sources;
}

int numa_node_of(const std::filesystem::path& sys, const std::string& pci_address) {
  std::ifstream file(sys / "bus/pci/devices" / pci_address / "numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

GpuList list_gpus(const DeviceSources& sources) {
  const Nvml nvml(sources.nvml_library);
  GpuList list;
  list.why_none = nvml.problem();
  if (!list.why_none.empty()) return list;
  list.gpus = nvml.gpus();
  if (list.gpus.empty()) list.why_none = "the NVIDIA driver shows no GPU to this process";
  for (Gpu& gpu : list.gpus) {
    gpu.device.numa_node = numa_node_of(sources.sys, gpu.device.pci_address);
    for (Device& instance : gpu.instances) instance.numa_node = gpu.device.numa_node;
  }
  return list;
}

GpuList list_gpus_of_any_vendor(const DeviceSources& sources) {
  GpuList list = list_gpus(sources);
  if (!list.gpus.empty()) return list;
  list.gpus = list_amd_gpus(sources);
  if (!list.gpus.empty()) list.why_none.clear();
  return list;
}

}  // namespace convoy::monitor
