// SPDX-License-Identifier: Apache-2.0
//
// Keeps freed blocks for later requests. A block has a size, the bytes that are in memory, and room
// to grow without a move, which costs only addresses: where no block of about the wanted size is
// kept, the nearest one grows or shrinks. The sizes of blocks in use and of kept blocks together
// never exceed the largest use so far, so keeping does not raise the peak, whatever the sizes.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace convoy::device {

class MemoryBlockPool {
 public:
  struct Source {
    // A block of `room` bytes whose first `bytes` are about to be used; later perhaps more of them.
    // Throws when there is no memory.
    void* (*allocate)(size_t bytes, size_t room);
    void (*release)(void* block, size_t room);
    // The bytes of the block from `bytes` on need no memory until they are used again.
    void (*shrink)(void* block, size_t bytes, size_t old_bytes);
  };
  explicit MemoryBlockPool(Source source) : source_(source) {}
  ~MemoryBlockPool() { release_kept(); }
  MemoryBlockPool(const MemoryBlockPool&) = delete;
  MemoryBlockPool& operator=(const MemoryBlockPool&) = delete;

  // Returns a block of at least `bytes`, which counts as at most an eighth more. When memory is
  // short, kept blocks go back to the source first.
  void* take(size_t bytes);
  // Returns false for a block that is not from this pool.
  bool give_back(void* block);
  void release_kept();
  // Like release_kept(), and sets most_in_use_bytes to the bytes in use now.
  void forget();

  struct Figures {
    size_t in_use_bytes = 0;
    size_t kept_bytes = 0;
    size_t most_in_use_bytes = 0;
    int64_t reused_blocks = 0;
    size_t added_bytes = 0;  // in total, by new blocks and by blocks that grew
  };
  Figures figures() const;

 private:
  struct KeptBlock {
    void* block = nullptr;
    uint64_t given_back = 0;  // a running number, which rises with each returned block
  };
  using Kept = std::multimap<size_t, KeptBlock>;  // by size

  Kept::iterator nearest(size_t bytes);
  void* reuse(Kept::iterator kept, size_t bytes);
  void* make(size_t bytes);
  void release_over(size_t limit_bytes);
  void release_oldest();
  void release_all();

  Source source_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> in_use_;
  Kept kept_;
  uint64_t clock_ = 0;
  Figures figures_;
};

}  // namespace convoy::device
