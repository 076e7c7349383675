// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/devices.h"

#include <charconv>
#include <fstream>

#include "convoy/base/error.h"
#include "convoy/launch/place/nvml.h"

namespace convoy::launch {

DeviceSources device_sources(const std::map<std::string, std::string>& environment) {
  DeviceSources sources;
  const auto named = environment.find("CONVOY_NVML_LIBRARY");
  if (named != environment.end() && !named->second.empty()) sources.nvml_library = named->second;
  return sources;
}

GpuList list_gpus(const DeviceSources& sources) {
  const Nvml nvml(sources.nvml_library);
  GpuList list;
  list.why_none = nvml.problem();
  if (!list.why_none.empty()) return list;
  list.gpus = nvml.gpus();
  if (list.gpus.empty()) list.why_none = "the NVIDIA driver shows no GPU to this process";
  for (Gpu& gpu : list.gpus) {
    std::ifstream file(sources.sys / "bus/pci/devices" / gpu.device.pci_address / "numa_node");
    int node = -1;
    if (file >> node) gpu.device.numa_node = node;
    for (Device& instance : gpu.instances) instance.numa_node = gpu.device.numa_node;
  }
  return list;
}

int rank_count(const std::string& wanted, const CountFacts& facts) {
  if (wanted == "cpu") return facts.usable_cpus;
  if (wanted == "auto") return facts.num_devices > 0 ? facts.num_devices : facts.usable_cpus;
  if (wanted == "gpu") {
    if (facts.num_devices > 0) return facts.num_devices;
    throw ConfigError(
        fmt::format("--nproc-per-node gpu: {}",
                    facts.why_none.empty() ? "CUDA_VISIBLE_DEVICES leaves no GPU" : facts.why_none),
        {.hint = "give a number, cpu, or auto"});
  }
  int number = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [rest, error] = std::from_chars(wanted.data(), end, number);
  CONVOY_CHECK(error == std::errc() && rest == end && number >= 1, ConfigError,
               "--nproc-per-node: wanted auto, gpu, cpu or a number from 1 on, found `{}`", wanted);
  return number;
}

}  // namespace convoy::launch
