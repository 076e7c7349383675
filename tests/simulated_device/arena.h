// SPDX-License-Identifier: Apache-2.0
//
// Memory that is mapped twice, at a fixed distance: tensors hold addresses of the host's view, and
// kernels of the device use the device's view. The protection of the host's view decides which
// accesses the host may make. The device's view is never protected, so kernels need not change any
// protection. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace convoy::simulated {

enum class HostAccess { None, Read, ReadWrite };

class Arena {
 public:
  enum class Kind {
    Device,  // the host's view has no memory: any access to it is a fault
    Pinned,  // both views have the same pages; the host may use its view until `protect`
  };
  // The address space of a view, which takes no memory until pages are used.
  static constexpr size_t kWindowBytes = size_t{64} << 30;

  explicit Arena(Kind kind);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Throws c10::OutOfMemoryError if the arena is full.
  char* allocate(size_t bytes);
  void release(char* address);
  void protect(char* address, HostAccess access);

  bool in_host_view(const void* address) const;
  // Translates an address of either view to the view that the function names.
  char* host_view(const void* address) const;
  char* device_view(const void* address) const;

 private:
  void grow(size_t bytes);
  void add_free(char* begin, size_t bytes);

  Kind kind_;
  size_t unit_bytes_;
  char* host_begin_ = nullptr;
  char* device_begin_ = nullptr;
  // Bytes from the beginning of the window; memory behind them was never allocated.
  size_t used_bytes_ = 0;
  size_t open_bytes_ = 0;  // bytes of the device's view that have memory, from its beginning
  std::map<char*, size_t> free_;
  std::set<std::pair<size_t, char*>> free_by_size_;
  std::map<char*, size_t> taken_;
};

}  // namespace convoy::simulated
