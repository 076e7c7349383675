// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counting_device.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/machine/counting/counted_memory.h"
#include "convoy/machine/counting/counted_ops.h"
#include "convoy/machine/counting/recording.h"

namespace convoy::counting {
namespace {

class Recorder {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    CONVOY_INVARIANT(!records_, "one Recording at a time");
    records_ = true;
    ++number_;
  }
  // Grows with each recording.
  uint64_t number() {
    const std::lock_guard lock(mutex_);
    return number_;
  }
  std::vector<Work> end() {
    const std::lock_guard lock(mutex_);
    records_ = false;
    return std::exchange(work_, {});
  }
  std::vector<Work> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(work_, {});
  }
  void record(Work work) {
    const std::lock_guard lock(mutex_);
    if (records_) work_.push_back(std::move(work));
  }

 private:
  std::mutex mutex_;
  bool records_ = false;
  uint64_t number_ = 0;
  std::vector<Work> work_;
};

Recorder& recorder() {
  static auto* made = new Recorder;
  return *made;
}

// Memory of the host from which a GPU could copy without a wait.
class PinnedMemory final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* address = bytes == 0 ? nullptr : std::malloc(bytes);
    const std::lock_guard lock(mutex_);
    pinned_[reinterpret_cast<uintptr_t>(address)] = bytes;
    return {address, address, &give_back, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
  bool record_event(void* address, void*, c10::Stream) override { return holds(address); }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

  bool holds(const void* address) const {
    const auto place = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    auto found = pinned_.upper_bound(place);
    return found != pinned_.begin() && place < (--found)->first + found->second;
  }

 private:
  static void give_back(void* address);

  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> pinned_;
};

PinnedMemory& pinned_memory() {
  static auto* memory = new PinnedMemory;
  return *memory;
}

void PinnedMemory::give_back(void* address) {
  {
    const std::lock_guard lock(pinned_memory().mutex_);
    pinned_memory().pinned_.erase(reinterpret_cast<uintptr_t>(address));
  }
  std::free(address);
}

class CountingHooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  bool isPinnedPtr(const void* address) const override { return pinned_memory().holds(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
};

// The device has one stream, on which everything runs in order.
class CountingGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { wait("stream"); }
  void synchronizeDevice(c10::DeviceIndex) const override { wait("device"); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new uint64_t;
    *static_cast<uint64_t*>(*event) = recorder().number();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void* event) const override {
    if (*static_cast<uint64_t*>(event) == recorder().number()) return wait("event");
    counting::record({.name = "wait for an earlier event", .host_reads_earlier = true});
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<uint64_t*>(event);
  }

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, device()); }
  static void wait(const char* name) {
    counting::record({.name = std::string("wait for ") + name, .host_waits = true});
  }
};

}  // namespace

void install() {
  static const bool is_installed = [] {
    CONVOY_INVARIANT(!at::isPrivateUse1HooksRegistered(),
                     "LibTorch holds another device of this kind already");
    c10::SetAllocator(c10::kPrivateUse1, &counted_allocator());
    at::setHostAllocator(c10::kPrivateUse1, &pinned_memory());
    c10::impl::registerDeviceGuard(c10::kPrivateUse1, new CountingGuard);
    c10::register_privateuse1_backend("counting");
    at::RegisterPrivateUse1HooksInterface(new CountingHooks);
    register_counted_ops();
    return true;
  }();
  (void)is_installed;
}

c10::Device device() { return {c10::kPrivateUse1, 0}; }

void label_memory(Content content) { counted_memory().label_others(content); }
void label_memory_of(const at::Tensor& tensor, Content content) {
  counted_memory().label(tensor.storage().data(), content);
}
size_t labelled_bytes(Content content) { return counted_memory().bytes_of(content); }
int64_t peak_memory_bytes() { return counted_memory().peak_bytes(); }
void reset_peak_memory() { counted_memory().reset_peak(); }

void record(Work work) { recorder().record(std::move(work)); }

Recording::Recording() { recorder().begin(); }
Recording::~Recording() { recorder().end(); }
std::vector<Work> Recording::take() { return recorder().take(); }

void count_launch(std::string_view kernel, std::span<const std::byte> parameters,
                  const std::vector<std::pair<const void*, int64_t>>& partly_moved) {
  std::map<uintptr_t, std::pair<CountedMemory::Block, uintptr_t>> lowest;
  for (size_t at = 0; at + sizeof(void*) <= parameters.size(); at += sizeof(void*)) {
    uintptr_t place = 0;
    std::memcpy(&place, parameters.data() + at, sizeof place);
    const auto block = counted_memory().find(reinterpret_cast<const void*>(place));
    if (!block) continue;
    auto& entry = lowest.try_emplace(block->begin, *block, place).first->second;
    entry.second = std::min(entry.second, place);
  }
  Work work{.name = std::string(kernel), .kind = WorkKind::OwnKernel, .launches = 1};
  for (const auto& [memory, bytes] : partly_moved) {
    const auto block = counted_memory().find(memory);
    if (!block) continue;
    lowest.erase(block->begin);
    work.bytes_of(block->content) += static_cast<double>(bytes);
  }
  for (const auto& [begin, entry] : lowest)
    work.bytes_of(entry.first.content) +=
        static_cast<double>(begin + entry.first.bytes - entry.second);
  record(std::move(work));
}

}  // namespace convoy::counting
