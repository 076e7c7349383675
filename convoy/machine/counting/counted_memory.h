// SPDX-License-Identifier: Apache-2.0
//
// The addresses of the counting device. They differ from all addresses of the host and have no
// memory, so a read or write of the host faults.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "convoy/machine/counting/counted_work.h"

namespace convoy::counting {

// Thread-safe.
class CountedMemory {
 public:
  void* take(size_t bytes);  // null for zero bytes
  void give_back(void* address);

  struct Block {
    uintptr_t begin = 0;
    size_t bytes = 0;
    Content content = Content::Other;
  };
  std::optional<Block> find(const void* address) const;
  // Labels all blocks that have no label yet.
  void label_others(Content content);
  void label(const void* address, Content content);  // the block that holds `address`
  size_t bytes_of(Content content) const;
  // Memory of all living tensors, rounded up as in CUDA's caching allocator.
  int64_t alive_bytes() const;
  int64_t peak_bytes() const;  // the largest alive_bytes() since reset_peak()
  void reset_peak();

 private:
  struct Taken {
    size_t bytes = 0;
    Content content = Content::Other;
  };
  mutable std::mutex mutex_;
  std::map<uintptr_t, Taken> taken_;
  uintptr_t next_ = uintptr_t{1} << 60;  // no process has such an address
  int64_t alive_bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

// The only CountedMemory of the process. It is never destroyed, since tensors may outlive any
// static.
CountedMemory& counted_memory();

c10::DeviceAllocator& counted_allocator();

}  // namespace convoy::counting
