// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

namespace convoy::device {
namespace {

// Smaller tensors come from the C library, which keeps freed memory of this size itself.
constexpr size_t kSmallestBytes = 64 << 10;
// Blocks of many huge pages request them: one page fault then fills 2 MiB, and matrix products miss
// fewer address translations.
constexpr size_t kHugePageBytes = 2 << 20;

void* allocate(size_t bytes) {
  void* block = c10::alloc_cpu(bytes);
  if (bytes < 2 * kHugePageBytes) return block;
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kHugePageBytes - 1) / kHugePageBytes;
  const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / kHugePageBytes;
  if (begin < end)
    ::madvise(reinterpret_cast<void*>(begin * kHugePageBytes), (end - begin) * kHugePageBytes,
              MADV_HUGEPAGE);  // advice only: its failure changes nothing
  return block;
}

// The largest block, in bytes, that malloc keeps. The C library returns larger ones when freed.
constexpr size_t kLargestKeptByMalloc = 1 << 20;

// Returns the pages of a smaller block to the system. In the C library's heap they would stay
// beside blocks in use: training whose batches differ in size exchanges such blocks at each step
// (SmolLM2-135M with LoRA in bf16: 120 of 940 MiB).
void release(void* block) {
  constexpr uintptr_t kPageBytes = 4096;
  const size_t bytes = ::malloc_usable_size(block);
  const uintptr_t begin =
      (reinterpret_cast<uintptr_t>(block) + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(block) + bytes) / kPageBytes * kPageBytes;
  if (bytes <= kLargestKeptByMalloc && begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  c10::free_cpu(block);
}

std::atomic<MemoryBlockPool*> shared_pool{nullptr};

void give_back(void* block) {
  if (block != nullptr && !shared_pool.load()->give_back(block)) c10::free_cpu(block);
}

class PooledAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = bytes < kSmallestBytes ? c10::alloc_cpu(bytes) : shared_pool.load()->take(bytes);
    return {block, block, bytes < kSmallestBytes ? &c10::free_cpu : &give_back,
            c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

void keep_tensor_memory() {
  // Pool and allocator exist as long as the process: tensors of static storage may outlive
  // everything else.
  static PooledAllocator* const allocator = [] {
    shared_pool = new MemoryBlockPool({&allocate, &release});
    auto* made = new PooledAllocator;
    c10::SetCPUAllocator(made, 1);
    // Gloo's threads take scratch memory from malloc. By default glibc raises this threshold with
    // each large block that is freed, and then keeps such blocks: 170 MiB beside 57 M parameters
    // under zero3.
    ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kLargestKeptByMalloc));
    return made;
  }();
  static_cast<void>(allocator);
}

void forget_kept_tensor_memory() {
  if (MemoryBlockPool* pool = shared_pool.load()) pool->forget();
}

MemoryBlockPool::Figures tensor_memory() {
  const MemoryBlockPool* pool = shared_pool.load();
  return pool == nullptr ? MemoryBlockPool::Figures{} : pool->figures();
}

}  // namespace convoy::device
