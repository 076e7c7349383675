// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's management library, opened at run time: lists the GPUs and the links between them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "convoy/machine/monitor/gpus/devices.h"
#include "convoy/machine/monitor/gpus/nvml_calls.h"

namespace convoy::monitor {

struct NvmlVersions {
  std::string driver = {};  // "550.54.15"; empty = unknown
  std::string nvml = {};    // "12.550.54.15"
  int cuda = 0;             // newest CUDA version that the driver runs: 12040 is 12.4; 0 = unknown
};

// The link between two GPUs.
enum class LinkKind { Unknown, Internal, OneSwitch, SeveralSwitches, HostBridge, Node, System };
struct GpuLink {
  LinkKind kind = LinkKind::Unknown;
  int nvlinks = 0;      // active links between the two GPUs, or to their common switch
  bool p2p_ok = false;  // the driver lets one GPU read the other's memory
  bool p2p_known = false;
};

// The library is open from construction to destruction. Opening it takes tens of milliseconds on a
// host with GPUs. One thread.
class Nvml {
 public:
  // `problem` of the result is empty when the library is open.
  explicit Nvml(std::filesystem::path library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& problem() const { return problem_; }
  bool is_mismatched() const { return mismatched_; }
  NvmlVersions versions() const;
  // The GPUs in the order of PCI addresses, without GPUs that this process may not open.
  std::vector<Gpu> gpus() const;
  // GPUs that the driver counts but does not open, with the reason.
  struct Broken {
    int index = -1;
    std::string reason = {};
    bool is_lost = true;  // false: a GPU that this process may not use
  };
  std::vector<Broken> broken() const;
  // A device with its handle for NVML calls. Instances follow their GPU.
  struct Handle {
    Device device;
    void* handle = nullptr;
    void* parent = nullptr;  // if it is an instance: its GPU
    bool mig_enabled = false;
  };
  std::vector<Handle> handles() const;
  // Rows and columns are in the order of `gpus`, which are handles() without instances.
  std::vector<std::vector<GpuLink>> links(const std::vector<Handle>& gpus) const;
  const nvml::Calls& calls() const { return call_; }

 private:
  void open();
  void close();
  Gpu read_gpu(void* handle, int index, std::vector<Handle>* all) const;
  void read_instances(void* handle, Gpu& gpu, std::vector<Handle>* all) const;
  std::vector<std::pair<int, void*>> open_handles() const;  // by index, of GPUs that may be opened

  std::filesystem::path path_;
  void* library_ = nullptr;
  nvml::Calls call_;
  bool initialised_ = false;
  bool mismatched_ = false;
  std::string problem_;
};

}  // namespace convoy::monitor
