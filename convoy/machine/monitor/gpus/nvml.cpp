// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "convoy/core/base/printable_text.h"

namespace convoy::monitor {
namespace {

using nvml::kSuccess;

std::string address_of(const nvml::PciInfo& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

int number(int (*function)(void*, unsigned*), void* handle) {
  unsigned value = 0;
  return function(handle, &value) == kSuccess ? static_cast<int>(value) : -1;
}

// NVML's levels of the nearest common ancestor.
LinkKind kind_of(int level) {
  switch (level) {
    case 0:
      return LinkKind::Internal;
    case 10:
      return LinkKind::OneSwitch;
    case 20:
      return LinkKind::SeveralSwitches;
    case 30:
      return LinkKind::HostBridge;
    case 40:
      return LinkKind::Node;
    case 50:
      return LinkKind::System;
    default:
      return LinkKind::Unknown;
  }
}

}  // namespace

Nvml::Nvml(std::filesystem::path library) : path_(std::move(library)) { open(); }

Nvml::~Nvml() { close(); }

void Nvml::open() {
  problem_.clear();
  library_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    problem_ = fmt::format("there is no NVIDIA driver ({} cannot be opened)", path_.string());
    return;
  }
  const std::string missing = call_.load(library_);
  if (!missing.empty()) {
    problem_ = fmt::format("{} has no {}: the NVIDIA driver is too old", path_.string(), missing);
    return;
  }
  const int result = call_.init();
  initialised_ = result == kSuccess;
  mismatched_ = result == nvml::kVersionMismatch;
  if (initialised_) return;
  if (result == nvml::kDriverNotLoaded)
    problem_ = "the NVIDIA driver is installed but not running";
  else if (mismatched_)
    problem_ =
        "the NVIDIA driver was updated under a running kernel module: their versions differ "
        "(reload the module "
        "or reboot)";
  else
    problem_ = fmt::format("NVML says: {}", call_.error(result));
}

void Nvml::close() {
  if (initialised_) call_.shutdown();
  initialised_ = false;
  if (library_ != nullptr) ::dlclose(library_);
  library_ = nullptr;
}

NvmlVersions Nvml::versions() const {
  NvmlVersions versions;
  if (!initialised_) return versions;
  std::array<char, nvml::kTextBytes> text{};
  if (call_.driver_version && call_.driver_version(text.data(), nvml::kTextBytes) == kSuccess)
    versions.driver = printable_text(text.data());
  if (call_.nvml_version && call_.nvml_version(text.data(), nvml::kTextBytes) == kSuccess)
    versions.nvml = printable_text(text.data());
  if (call_.cuda_version && call_.cuda_version(&versions.cuda) != kSuccess) versions.cuda = 0;
  return versions;
}

std::vector<std::pair<int, void*>> Nvml::open_handles() const {
  std::vector<std::pair<int, void*>> found;
  unsigned count = 0;
  if (!initialised_ || call_.count(&count) != kSuccess) return found;
  for (unsigned index = 0; index < count; ++index) {
    void* handle = nullptr;
    // This call fails for GPUs that a container or a job's device cgroup hides; CUDA does not show
    // them either.
    if (call_.handle_by_index(index, &handle) == kSuccess)
      found.emplace_back(static_cast<int>(index), handle);
  }
  return found;
}

std::vector<Nvml::Broken> Nvml::broken() const {
  std::vector<Broken> found;
  unsigned count = 0;
  if (!initialised_ || call_.count(&count) != kSuccess) return found;
  for (unsigned index = 0; index < count; ++index) {
    void* handle = nullptr;
    const int code = call_.handle_by_index(index, &handle);
    if (code == kSuccess) continue;
    const bool is_lost =
        code == nvml::kGpuIsLost || code == nvml::kResetRequired || code == nvml::kUnknownError;
    found.push_back({static_cast<int>(index), call_.error(code), is_lost});
  }
  return found;
}

std::vector<Gpu> Nvml::gpus() const {
  std::vector<Gpu> found;
  for (const auto& [index, handle] : open_handles())
    found.push_back(read_gpu(handle, index, nullptr));
  return found;
}

std::vector<Nvml::Handle> Nvml::handles() const {
  std::vector<Handle> found;
  for (const auto& [index, handle] : open_handles()) read_gpu(handle, index, &found);
  return found;
}

Gpu Nvml::read_gpu(void* handle, int index, std::vector<Handle>* all) const {
  Gpu gpu;
  gpu.device.gpu = index;
  gpu.device.uuid = call_.text(call_.uuid, handle);
  gpu.device.name = call_.text(call_.name, handle);
  nvml::PciInfo pci{};
  if (call_.pci_info(handle, &pci) == kSuccess) gpu.device.pci_address = address_of(pci);
  nvml::MemoryInfo memory{};
  if (call_.memory_info(handle, &memory) == kSuccess)
    gpu.device.memory_bytes = static_cast<int64_t>(memory.total);
  if (call_.compute_capability != nullptr &&
      call_.compute_capability(handle, &gpu.device.compute_major, &gpu.device.compute_minor) !=
          kSuccess)
    gpu.device.compute_major = gpu.device.compute_minor = 0;
  unsigned current = 0, pending = 0;
  gpu.mig_enabled =
      call_.knows_mig() && call_.mig_mode(handle, &current, &pending) == kSuccess && current == 1;
  if (all != nullptr)
    all->push_back({.device = gpu.device, .handle = handle, .mig_enabled = gpu.mig_enabled});
  if (gpu.mig_enabled) read_instances(handle, gpu, all);
  return gpu;
}

void Nvml::read_instances(void* handle, Gpu& gpu, std::vector<Handle>* all) const {
  const int slots = number(call_.max_mig_devices, handle);
  for (int slot = 0; slot < slots; ++slot) {
    void* instance = nullptr;
    // Slots between used ones may be empty.
    const int result = call_.mig_handle_by_index(handle, static_cast<unsigned>(slot), &instance);
    if (result != kSuccess) continue;
    Device device = gpu.device;
    device.mig = true;
    device.uuid = call_.text(call_.uuid, instance);
    device.name = call_.text(call_.name, instance);
    device.gpu_instance = number(call_.gpu_instance_id, instance);
    device.compute_instance = number(call_.compute_instance_id, instance);
    nvml::MemoryInfo memory{};
    device.memory_bytes =
        call_.memory_info(instance, &memory) == kSuccess ? static_cast<int64_t>(memory.total) : 0;
    if (all != nullptr) all->push_back({.device = device, .handle = instance, .parent = handle});
    gpu.instances.push_back(std::move(device));
  }
}

std::vector<std::vector<GpuLink>> Nvml::links(const std::vector<Handle>& gpus) const {
  // For each GPU, the number of active links to each PCI address.
  std::vector<std::map<std::string, int>> remotes(gpus.size());
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
    for (unsigned link = 0; call_.link_state && link < nvml::kMostLinks; ++link) {
      unsigned active = 0;
      if (call_.link_state(gpus[gpu].handle, link, &active) != kSuccess || active != 1) continue;
      nvml::PciInfo remote{};
      if (call_.link_remote_pci &&
          call_.link_remote_pci(gpus[gpu].handle, link, &remote) == kSuccess)
        ++remotes[gpu][address_of(remote)];
    }
  const auto is_gpu = [&](const std::string& address) {
    return std::any_of(gpus.begin(), gpus.end(),
                       [&](const Handle& other) { return other.device.pci_address == address; });
  };
  // A GPU's links to switches reach every other GPU that has links to switches.
  const auto to_switches = [&](size_t gpu) {
    int sum = 0;
    for (const auto& [address, count] : remotes[gpu]) sum += is_gpu(address) ? 0 : count;
    return sum;
  };
  std::vector<std::vector<GpuLink>> links(gpus.size(), std::vector<GpuLink>(gpus.size()));
  for (size_t row = 0; row < gpus.size(); ++row)
    for (size_t column = 0; column < gpus.size(); ++column) {
      if (row == column) continue;
      GpuLink& link = links[row][column];
      void* const from = gpus[row].handle;
      void* const to = gpus[column].handle;
      int level = -1;
      if (call_.common_ancestor && call_.common_ancestor(from, to, &level) == kSuccess)
        link.kind = kind_of(level);
      int status = -1;
      constexpr int kRead = 0;
      link.p2p_known = call_.p2p_status && call_.p2p_status(from, to, kRead, &status) == kSuccess;
      link.p2p_ok = link.p2p_known && status == 0;
      const auto direct = remotes[row].find(gpus[column].device.pci_address);
      link.nvlinks = direct == remotes[row].end() ? std::min(to_switches(row), to_switches(column))
                                                  : direct->second;
    }
  return links;
}

}  // namespace convoy::monitor
