// SPDX-License-Identifier: Apache-2.0
//
// The GPUs and MIG instances of this host: NVIDIA's by NVML opened at run time, AMD's by what the
// kernel's KFD shows. No CUDA, no ROCm, no LibTorch, no context made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace convoy::monitor {

enum class Vendor { Nvidia, Amd };

// A device that a rank can compute on: a whole GPU, or a MIG instance of one.
struct Device {
  int gpu = -1;  // the vendor's number: NVML's index (the order of PCI addresses), KFD's order
  std::string uuid = {};         // "GPU-..." or "MIG-..."
  std::string name = {};         // "NVIDIA H100 80GB HBM3"
  std::string pci_address = {};  // "0000:3b:00.0", as sysfs spells it
  int64_t memory_bytes = 0;      // 0 = unknown
  int compute_major = 0;         // compute capability; 0 = unknown
  int compute_minor = 0;
  int numa_node = -1;  // node of the GPU's slot; -1 = not in sysfs
  bool mig = false;
  int gpu_instance = -1;  // for a MIG instance
  int compute_instance = -1;
  Vendor vendor = Vendor::Nvidia;
};

struct Gpu {
  Device device = {};
  bool mig_enabled = false;
  std::vector<Device> instances = {};  // with MIG enabled only these can be computed on
};

struct DeviceSources {
  std::filesystem::path nvml_library = "libnvidia-ml.so.1";
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
};

struct GpuList {
  std::vector<Gpu> gpus = {};
  std::string why_none = {};  // why there are none: no driver, no GPU, NVML's own message
};

// The driver's NVML library, or the one that CONVOY_NVML_LIBRARY names; /sys and /proc, or the
// folders below CONVOY_HOST_ROOT.
DeviceSources device_sources(const std::map<std::string, std::string>& environment);

// Lists only NVIDIA's GPUs, on which Convoy's own ranks can compute. Opens NVML, which takes tens
// of milliseconds on a host with GPUs: call it only when a device matters. Never throws for a host
// without GPUs.
GpuList list_gpus(const DeviceSources& sources = {});

// Lists NVIDIA's GPUs; if there are none, AMD's.
GpuList list_gpus_of_any_vendor(const DeviceSources& sources = {});

// NUMA node of a PCI device; -1 = not in /sys.
int numa_node_of(const std::filesystem::path& sys, const std::string& pci_address);

}  // namespace convoy::monitor
