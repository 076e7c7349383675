// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace convoy::launch {
namespace {

constexpr int kSuccess = 0;
constexpr int kDriverNotLoaded = 9;
constexpr unsigned kTextBytes = 96;  // of names and UUIDs: NVML's largest

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct MemoryInfo {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// Its `used` leaves out what the driver keeps for itself, which the first version counts since R510.
struct MemoryInfo2 {
  unsigned version = sizeof(MemoryInfo2) | (2U << 24);
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

constexpr int kGpuTemperature = 0;  // NVML_TEMPERATURE_GPU

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, void**) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*pci_info)(void*, PciInfo*) = nullptr;
  int (*memory_info)(void*, MemoryInfo*) = nullptr;
  // What a driver may lack.
  int (*memory_info_2)(void*, MemoryInfo2*) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;
  int (*power_milliwatts)(void*, unsigned*) = nullptr;
  int (*compute_capability)(void*, int*, int*) = nullptr;
  // Absent before driver 450.
  int (*mig_mode)(void*, unsigned*, unsigned*) = nullptr;
  int (*max_mig_devices)(void*, unsigned*) = nullptr;
  int (*mig_handle_by_index)(void*, unsigned, void**) = nullptr;
  int (*gpu_instance_id)(void*, unsigned*) = nullptr;
  int (*compute_instance_id)(void*, unsigned*) = nullptr;

  // Returns the name of a function that every driver has and this library lacks; empty = all are there.
  std::string load(void* library) {
    std::string missing;
    const auto find = [&](const char* symbol, auto& function, bool needed) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, symbol));
      if (function == nullptr && needed) missing = symbol;
    };
    find("nvmlInit_v2", init, true);
    find("nvmlShutdown", shutdown, true);
    find("nvmlErrorString", error_string, true);
    find("nvmlDeviceGetCount_v2", count, true);
    find("nvmlDeviceGetHandleByIndex_v2", handle_by_index, true);
    find("nvmlDeviceGetUUID", uuid, true);
    find("nvmlDeviceGetName", name, true);
    find("nvmlDeviceGetPciInfo_v3", pci_info, true);
    find("nvmlDeviceGetMemoryInfo", memory_info, true);
    find("nvmlDeviceGetMemoryInfo_v2", memory_info_2, false);
    find("nvmlDeviceGetUtilizationRates", utilization, false);
    find("nvmlDeviceGetTemperature", temperature, false);
    find("nvmlDeviceGetPowerUsage", power_milliwatts, false);
    find("nvmlDeviceGetCudaComputeCapability", compute_capability, false);
    find("nvmlDeviceGetMigMode", mig_mode, false);
    find("nvmlDeviceGetMaxMigDeviceCount", max_mig_devices, false);
    find("nvmlDeviceGetMigDeviceHandleByIndex", mig_handle_by_index, false);
    find("nvmlDeviceGetGpuInstanceId", gpu_instance_id, false);
    find("nvmlDeviceGetComputeInstanceId", compute_instance_id, false);
    return missing;
  }

  bool knows_mig() const {
    return mig_mode && max_mig_devices && mig_handle_by_index && gpu_instance_id &&
           compute_instance_id;
  }

  std::string text(int (*function)(void*, char*, unsigned), void* handle) const {
    std::array<char, kTextBytes> buffer{};
    if (function(handle, buffer.data(), kTextBytes) != kSuccess) return "";
    buffer.back() = '\0';
    return buffer.data();
  }

  int number(int (*function)(void*, unsigned*), void* handle) const {
    unsigned value = 0;
    return function(handle, &value) == kSuccess ? static_cast<int>(value) : -1;
  }
};

Nvml::Nvml(const std::filesystem::path& library) : call_(std::make_unique<Functions>()) {
  library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    problem_ = fmt::format("there is no NVIDIA driver ({} can not be opened)", library.string());
    return;
  }
  const std::string missing = call_->load(library_);
  if (!missing.empty()) {
    problem_ = fmt::format("{} has no {}: the NVIDIA driver is too old", library.string(), missing);
    return;
  }
  const int result = call_->init();
  initialised_ = result == kSuccess;
  if (initialised_) return;
  problem_ = result == kDriverNotLoaded ? "the NVIDIA driver is installed but not running"
                                        : fmt::format("NVML says: {}", call_->error_string(result));
}

Nvml::~Nvml() {
  if (initialised_) call_->shutdown();
  if (library_ != nullptr) ::dlclose(library_);
}

std::vector<std::pair<int, void*>> Nvml::handles() const {
  std::vector<std::pair<int, void*>> found;
  unsigned count = 0;
  if (!initialised_ || call_->count(&count) != kSuccess) return found;
  for (unsigned index = 0; index < count; ++index) {
    void* handle = nullptr;
    // A container or a job's device cgroup hides GPUs from CUDA this way as well.
    if (call_->handle_by_index(index, &handle) == kSuccess)
      found.emplace_back(static_cast<int>(index), handle);
  }
  return found;
}

std::vector<Gpu> Nvml::gpus() const {
  std::vector<Gpu> found;
  for (const auto& [index, handle] : handles()) found.push_back(read_gpu(handle, index));
  return found;
}

std::vector<DeviceReading> Nvml::readings() const {
  std::vector<DeviceReading> found;
  for (const auto& [index, handle] : handles()) {
    DeviceReading reading{.index = index, .name = call_->text(call_->name, handle)};
    unsigned value = 0;
    if (call_->temperature && call_->temperature(handle, kGpuTemperature, &value) == kSuccess)
      reading.temperature_celsius = value;
    if (call_->power_milliwatts && call_->power_milliwatts(handle, &value) == kSuccess)
      reading.power_watts = value / 1000.0;
    Utilization busy{};
    if (call_->utilization && call_->utilization(handle, &busy) == kSuccess) {
      reading.busy_percent = busy.gpu;
      reading.memory_busy_percent = busy.memory;
    }
    MemoryInfo memory{};
    MemoryInfo2 exact{};
    if (call_->memory_info_2 && call_->memory_info_2(handle, &exact) == kSuccess) {
      reading.memory_total_mib = static_cast<int64_t>(exact.total >> 20);
      reading.memory_used_mib = static_cast<int64_t>(exact.used >> 20);
    } else if (call_->memory_info(handle, &memory) == kSuccess) {
      reading.memory_total_mib = static_cast<int64_t>(memory.total >> 20);
      reading.memory_used_mib = static_cast<int64_t>(memory.used >> 20);
    }
    found.push_back(std::move(reading));
  }
  return found;
}

Gpu Nvml::read_gpu(void* handle, int index) const {
  Gpu gpu;
  gpu.device.gpu = index;
  gpu.device.uuid = call_->text(call_->uuid, handle);
  gpu.device.name = call_->text(call_->name, handle);
  PciInfo pci{};
  if (call_->pci_info(handle, &pci) == kSuccess)
    gpu.device.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
  MemoryInfo memory{};
  if (call_->memory_info(handle, &memory) == kSuccess)
    gpu.device.memory_bytes = static_cast<int64_t>(memory.total);
  int minor = 0;
  if (call_->compute_capability != nullptr &&
      call_->compute_capability(handle, &gpu.device.compute_major, &minor) != kSuccess)
    gpu.device.compute_major = 0;
  unsigned current = 0, pending = 0;
  gpu.mig_enabled =
      call_->knows_mig() && call_->mig_mode(handle, &current, &pending) == kSuccess && current == 1;
  if (gpu.mig_enabled) read_instances(handle, gpu);
  return gpu;
}

void Nvml::read_instances(void* handle, Gpu& gpu) const {
  const int slots = call_->number(call_->max_mig_devices, handle);
  for (int slot = 0; slot < slots; ++slot) {
    void* instance = nullptr;
    // Slots between used ones may be empty.
    const int result = call_->mig_handle_by_index(handle, static_cast<unsigned>(slot), &instance);
    if (result != kSuccess) continue;
    Device device = gpu.device;
    device.mig = true;
    device.uuid = call_->text(call_->uuid, instance);
    device.name = call_->text(call_->name, instance);
    device.gpu_instance = call_->number(call_->gpu_instance_id, instance);
    device.compute_instance = call_->number(call_->compute_instance_id, instance);
    MemoryInfo memory{};
    device.memory_bytes =
        call_->memory_info(instance, &memory) == kSuccess ? static_cast<int64_t>(memory.total) : 0;
    gpu.instances.push_back(std::move(device));
  }
}

}  // namespace convoy::launch
