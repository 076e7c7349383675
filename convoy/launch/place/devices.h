// SPDX-License-Identifier: Apache-2.0
//
// The NVIDIA GPUs and MIG instances of this host, by NVML opened at run time: no CUDA, no LibTorch, no context made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace convoy::launch {

// One thing that a rank can compute on: a whole GPU, or a MIG instance of one.
struct Device {
  int gpu = -1;                  // NVML's index of the GPU: the order of PCI addresses
  std::string uuid = {};         // "GPU-..." or "MIG-..."
  std::string name = {};         // "NVIDIA H100 80GB HBM3"
  std::string pci_address = {};  // "0000:3b:00.0", as sysfs spells it
  int64_t memory_bytes = 0;      // 0 = unknown
  int compute_major = 0;         // of the compute capability; 0 = unknown
  int numa_node = -1;            // of the GPU's slot; -1 = sysfs does not say
  bool mig = false;
  int gpu_instance = -1;  // of a MIG instance
  int compute_instance = -1;
};

struct Gpu {
  Device device = {};
  bool mig_enabled = false;
  std::vector<Device> instances = {};  // with MIG enabled only these can be computed on
};

struct DeviceSources {
  std::filesystem::path nvml_library = "libnvidia-ml.so.1";
  std::filesystem::path sys = "/sys";
};

struct GpuList {
  std::vector<Gpu> gpus = {};
  std::string why_none = {};  // why there are none: no driver, no GPU, NVML's own words
};

// /sys and the driver's library, or what CONVOY_NVML_LIBRARY names.
DeviceSources device_sources(const std::map<std::string, std::string>& environment);

// Opens NVML, which takes tens of milliseconds on a host with GPUs: call it only when a device matters. Never throws
// for a host without GPUs.
GpuList list_gpus(const DeviceSources& sources = {});

struct DeviceSelection {
  std::vector<Device> devices = {};  // by local rank
  // What the ranks get, with the user's own spelling of each device kept (indices, UUIDs, prefixes); nothing = leave
  // the variable alone.
  std::optional<std::string> cuda_visible_devices = {};
  // CUDA shows a process only one MIG instance, so each rank must see its own alone, as --virtual-local-rank does.
  bool one_device_per_rank = false;
  std::vector<std::string>
      tokens;  // by local rank: how CUDA_VISIBLE_DEVICES names that device alone
  std::vector<std::string> notes = {};  // what was cut off or is uncertain
};

struct SelectionRequest {
  std::optional<std::string> cuda_visible_devices = {};  // as found; nothing = unset
  std::string cuda_device_order = {};                    // CUDA_DEVICE_ORDER as found
  std::string gpu_ids = {};  // --gpu-ids 0,2: positions among the visible; or UUIDs
};

// With CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER of the environment.
SelectionRequest selection_request(const std::map<std::string, std::string>& environment,
                                   const std::string& gpu_ids);

// The devices CUDA would show, in its order: a list ends at the first entry that CUDA does not know, an empty one or
// "-1" hides everything, an entry named twice hides everything. Throws ConfigError when gpu_ids names one not visible.
DeviceSelection select_devices(const std::vector<Gpu>& gpus, const SelectionRequest& request);

struct CountFacts {
  int num_devices = 0;        // of the selection
  int usable_cpus = 1;        // affinity and cgroup quota
  std::string why_none = {};  // GpuList::why_none
};

// --nproc-per-node: a number, `gpu`, `cpu`, or `auto` = devices, else CPUs. Throws ConfigError: `gpu` without one, a
// number below 1, another word.
int rank_count(const std::string& wanted, const CountFacts& facts);

}  // namespace convoy::launch
