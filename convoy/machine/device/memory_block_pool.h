// SPDX-License-Identifier: Apache-2.0
//
// Keeps freed blocks for later requests of about the same size. Blocks in use and kept blocks
// together never exceed the largest use so far, so keeping does not raise the peak, whatever the
// sizes. Thread-safe.
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
    void* (*allocate)(size_t bytes);  // throws when there is no memory
    void (*release)(void* block);
  };
  explicit MemoryBlockPool(Source source) : source_(source) {}
  ~MemoryBlockPool() { release_kept(); }
  MemoryBlockPool(const MemoryBlockPool&) = delete;
  MemoryBlockPool& operator=(const MemoryBlockPool&) = delete;

  // Returns a block of at least `bytes` and at most an eighth more. When memory is short, kept
  // blocks go back to the source first.
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
  };
  Figures figures() const;

 private:
  struct KeptBlock {
    void* block = nullptr;
    uint64_t given_back = 0;  // a running number, which rises with each returned block
  };
  void* reuse(size_t bytes);
  void* make(size_t bytes);
  void release_oldest();
  void release_all();

  Source source_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> in_use_;
  std::multimap<size_t, KeptBlock> kept_;  // by size
  uint64_t clock_ = 0;
  Figures figures_;
};

}  // namespace convoy::device
