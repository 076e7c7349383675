// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/allocators.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>

#include "simulated_device/machine.h"

namespace convoy::simulated {
namespace {

constexpr c10::DeviceIndex kNoDevice = -1;
constexpr uint8_t kOverTheHostsAllocator = 200;

thread_local c10::DeviceIndex kernel_device = kNoDevice;

void release(void* address) { machine().release(address); }

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(kDeviceType, current_device());
    char* address = machine().allocate(device.index(), bytes);
    return {address, address, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    std::memcpy(machine().device_view(target), machine().device_view(source), bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    machine().record_stream(data.get(), stream);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const MemoryFigures figures = machine().memory(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto live = static_cast<int64_t>(figures.live_bytes);
    const auto peak = static_cast<int64_t>(figures.peak_bytes);
    for (auto* bytes : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
                        &stats.requested_bytes}) {
      (*bytes)[0].current = live;
      (*bytes)[0].peak = peak;
    }
    stats.num_device_alloc = figures.allocations;
    return stats;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const size_t total = machine().capacity(device);
    return {total - machine().memory(device).live_bytes, total};
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override { machine().reset_peak(device); }
};

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    char* address = machine().allocate_pinned(bytes);
    return {address, address, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
  // The machine knows the pending copies already.
  bool record_event(void* address, void*, c10::Stream) override {
    return machine().is_pinned(address);
  }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

// LibTorch's CPU allocator, except for threads that run a kernel of a device.
class KernelAllocator final : public c10::Allocator {
 public:
  explicit KernelAllocator(c10::Allocator& host) : host_(host) {
    hosts_deleter_ = host.raw_deleter();
  }

  c10::DataPtr allocate(size_t bytes) override {
    if (kernel_device == kNoDevice) return host_.allocate(bytes);
    char* address = machine().allocate(kernel_device, bytes);
    char* view = address == nullptr ? nullptr : machine().device_view(address);
    return {view, view, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_either; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }

 private:
  static void release_either(void* address) {
    if (!machine().release(address)) hosts_deleter_(address);
  }

  c10::Allocator& host_;
  static c10::DeleterFnPtr hosts_deleter_;
};
c10::DeleterFnPtr KernelAllocator::hosts_deleter_ = nullptr;

}  // namespace

c10::Allocator& device_allocator() {
  static auto* allocator = new DeviceAllocator;
  return *allocator;
}

at::HostAllocator& pinned_allocator() {
  static auto* allocator = new PinnedAllocator;
  return *allocator;
}

c10::Allocator& KernelMemory::allocator() { return *c10::GetAllocator(c10::kCPU); }

void register_allocators() {
  c10::SetAllocator(kDeviceType, &device_allocator());
  at::setHostAllocator(kDeviceType, &pinned_allocator());
  c10::SetAllocator(c10::kCPU, new KernelAllocator(*c10::GetAllocator(c10::kCPU)),
                    kOverTheHostsAllocator);
}

KernelMemory::KernelMemory(c10::DeviceIndex device)
    : outer_(std::exchange(kernel_device, device)) {}

KernelMemory::~KernelMemory() { kernel_device = outer_; }

c10::DataPtr adopt(c10::DataPtr result, size_t bytes, c10::Device device) {
  char* address = nullptr;
  if (result.get_deleter() == &release) {
    address = machine().host_view(result.release_context());
  } else if (bytes > 0) {
    address = machine().allocate(device.index(), bytes);
    std::memcpy(machine().device_view(address), result.get(), bytes);
  }
  return {address, address, &release, device};
}

}  // namespace convoy::simulated
