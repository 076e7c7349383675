// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counted_memory.h"

namespace convoy::counting {
namespace {

constexpr uintptr_t kAddressStep = 512;  // as CUDA's caching allocator

void give_back_address(void* address) { counted_memory().give_back(address); }

class CountedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* address = counted_memory().take(bytes);
    return {address, address, &give_back_address, c10::Device(c10::kPrivateUse1, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back_address; }
  void copy_data(void*, const void*, size_t) const override {}
};

}  // namespace

void* CountedMemory::take(size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const uintptr_t begin = next_;
  next_ += (bytes + kAddressStep - 1) / kAddressStep * kAddressStep;
  taken_.emplace(begin, Taken{.bytes = bytes});
  return reinterpret_cast<void*>(begin);
}

void CountedMemory::give_back(void* address) {
  const std::lock_guard lock(mutex_);
  taken_.erase(reinterpret_cast<uintptr_t>(address));
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

CountedMemory& counted_memory() {
  static auto* memory = new CountedMemory;
  return *memory;
}

c10::Allocator& counted_allocator() {
  static auto* allocator = new CountedAllocator;
  return *allocator;
}

}  // namespace convoy::counting
