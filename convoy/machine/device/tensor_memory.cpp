// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstring>

namespace convoy::device {
namespace {

// Smaller tensors come from the C library, which keeps freed memory of this size itself.
constexpr size_t kSmallestBytes = 64 << 10;
// Blocks of many huge pages request them: one page fault then fills 2 MiB, and matrix products miss
// fewer address translations.
constexpr size_t kHugePageBytes = 2 << 20;

// Blocks are mappings of their own, not blocks of the C library's heap, where freed blocks would
// keep their pages beside blocks in use: training whose batches differ in size exchanges such
// blocks at each step (SmolLM2-135M with LoRA in bf16: 120 of 940 MiB). Room that is never used
// has addresses only, so it does not count as memory of the process, nor is it reserved.
std::byte* map(size_t bytes) {
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(begin != MAP_FAILED, "DefaultCPUAllocator: not enough memory: you tried to allocate ",
              bytes, " bytes.");
  return static_cast<std::byte*>(begin);
}

// From the next address on at which a huge page may begin.
std::byte* map_huge_pages(size_t bytes, size_t room) {
  std::byte* const begin = map(room + kHugePageBytes);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + room, kHugePageBytes - before);
  // Advice only: its failure changes nothing. A huge page at the end would be larger than its use.
  ::madvise(begin + before, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return begin + before;
}

void* allocate(size_t bytes, size_t room) {
  return bytes < 2 * kHugePageBytes ? map(room) : map_huge_pages(bytes, room);
}

void release(void* block, size_t room) { ::munmap(block, room); }

void shrink(void* block, size_t bytes, size_t old_bytes) {
  constexpr size_t kPageBytes = 4096;
  const size_t kept = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (kept < old_bytes)
    ::madvise(static_cast<std::byte*>(block) + kept, old_bytes - kept, MADV_DONTNEED);
}

// The largest block, in bytes, that malloc keeps. The C library returns larger ones when freed.
constexpr size_t kLargestKeptByMalloc = 1 << 20;

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
    shared_pool = new MemoryBlockPool({&allocate, &release, &shrink});
    auto* made = new PooledAllocator;
    c10::SetCPUAllocator(made, 1);
    // Gloo's threads take scratch memory from malloc. By default glibc raises this threshold with
    // each large block that is freed, and then keeps such blocks: 170 MiB beside 57 M parameters
    // under zero3.
    ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kLargestKeptByMalloc));
    // Scratch memory of kernels is often the last block of the heap. By default glibc returns it to
    // the system each time it is freed.
    ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(4 * kLargestKeptByMalloc));
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
