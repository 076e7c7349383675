// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counted_memory.h"

#include <algorithm>

namespace convoy::counting {
namespace {

constexpr uintptr_t kAddressStep = 512;  // as CUDA's caching allocator

uintptr_t in_steps(size_t bytes) {
  return (bytes + kAddressStep - 1) / kAddressStep * kAddressStep;
}

void give_back_address(void* address) { counted_memory().give_back(address); }

class CountedAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* address = counted_memory().take(bytes);
    return {address, address, &give_back_address, c10::Device(c10::kPrivateUse1, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back_address; }
  void copy_data(void*, const void*, size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    auto& all =
        stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    all.current = counted_memory().alive_bytes();
    all.peak = counted_memory().peak_bytes();
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override { counted_memory().reset_peak(); }
};

}  // namespace

void* CountedMemory::take(size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const uintptr_t begin = next_;
  next_ += in_steps(bytes);
  taken_.emplace(begin, Taken{.bytes = bytes});
  alive_bytes_ += static_cast<int64_t>(in_steps(bytes));
  peak_bytes_ = std::max(peak_bytes_, alive_bytes_);
  return reinterpret_cast<void*>(begin);
}

void CountedMemory::give_back(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(reinterpret_cast<uintptr_t>(address));
  if (found == taken_.end()) return;
  alive_bytes_ -= static_cast<int64_t>(in_steps(found->second.bytes));
  taken_.erase(found);
}

std::optional<CountedMemory::Block> CountedMemory::find(const void* address) const {
  const auto place = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto found = taken_.upper_bound(place);
  if (found == taken_.begin()) return std::nullopt;
  --found;
  if (place >= found->first + found->second.bytes) return std::nullopt;
  return Block{found->first, found->second.bytes, found->second.content};
}

void CountedMemory::label(const void* address, Content content) {
  const auto block = find(address);
  if (!block) return;
  const std::lock_guard lock(mutex_);
  taken_.at(block->begin).content = content;
}

void CountedMemory::label_others(Content content) {
  const std::lock_guard lock(mutex_);
  for (auto& [begin, taken] : taken_)
    if (taken.content == Content::Other) taken.content = content;
}

size_t CountedMemory::bytes_of(Content content) const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [begin, taken] : taken_)
    if (taken.content == content) bytes += taken.bytes;
  return bytes;
}

int64_t CountedMemory::alive_bytes() const {
  const std::lock_guard lock(mutex_);
  return alive_bytes_;
}

int64_t CountedMemory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void CountedMemory::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = alive_bytes_;
}

CountedMemory& counted_memory() {
  static auto* memory = new CountedMemory;
  return *memory;
}

c10::DeviceAllocator& counted_allocator() {
  static auto* allocator = new CountedAllocator;
  return *allocator;
}

}  // namespace convoy::counting
