// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/simulated_device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "simulated_device/allocators.h"
#include "simulated_device/fault_report.h"
#include "simulated_device/generator.h"
#include "simulated_device/guard.h"
#include "simulated_device/kernels.h"
#include "simulated_device/machine.h"
#include "simulated_device/op_names.h"

namespace convoy::simulated {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return machine().devices(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return make_generator(device < 0 ? current_device() : device, c10::default_rng_seed_val);
  }
  c10::Device getDeviceFromPtr(void* address) const override {
    return machine().device_of(address);
  }
  bool isPinnedPtr(const void* address) const override { return machine().is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceIndex before = exchangeDevice(storage.device().index());
    c10::DataPtr data = device_allocator().allocate(bytes);
    setCurrentDevice(before);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) device_allocator().copy_data(data.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(data));
    storage.set_nbytes(bytes);
  }
};

// Ends the process with an error if faults remain that no later work has thrown.
void end_with_findings() {
  const std::vector<std::string> findings = machine().take_findings();
  if (findings.empty()) return;
  for (const std::string& finding : findings)
    std::fprintf(stderr, "simulated device: %s\n", finding.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace

void install(int devices) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (is_installed()) {
    TORCH_CHECK(devices <= machine().devices(), "simulated device: installed with ",
                int{machine().devices()}, " devices, now ", devices, " are wanted");
    return;
  }
  make_machine(devices);
  register_allocators();
  register_guard();
  c10::register_privateuse1_backend("sim");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  register_kernels();
  follow_ops();
  report_faults();
  std::atexit(&end_with_findings);
}

c10::Device device(int index) { return {kDeviceType, static_cast<c10::DeviceIndex>(index)}; }

std::vector<HostWait> host_waits() { return machine().host_waits(); }
void reset_host_waits() { machine().reset_host_waits(); }

MemoryFigures memory(int device) { return machine().memory(static_cast<c10::DeviceIndex>(device)); }
void reset_peak(int device) { machine().reset_peak(static_cast<c10::DeviceIndex>(device)); }
void set_capacity(int device, size_t bytes) {
  machine().set_capacity(static_cast<c10::DeviceIndex>(device), bytes);
}

std::vector<std::string> take_findings() { return machine().take_findings(); }

}  // namespace convoy::simulated
