// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/arena.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace convoy::simulated {
namespace {

constexpr size_t kGrowthBytes = size_t{64} << 20;
// Blocks begin at multiples of this number, as LibTorch aligns CPU tensors, because kernels may
// depend on it.
constexpr size_t kDeviceUnitBytes = 64;

char* map(size_t bytes, int protection, int flags, int file) {
  void* address = ::mmap(nullptr, bytes, protection, flags, file, 0);
  TORCH_CHECK(address != MAP_FAILED, "simulated device: no address space for ", bytes, " bytes");
  return static_cast<char*>(address);
}

}  // namespace

Arena::Arena(Kind kind)
    : kind_(kind),
      unit_bytes_(kind == Kind::Device ? kDeviceUnitBytes
                                       : static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
  if (kind == Kind::Device) {
    host_begin_ = map(2 * kWindowBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    device_begin_ = host_begin_ + kWindowBytes;
    return;
  }
  const int file = ::memfd_create("pinned", MFD_CLOEXEC);
  TORCH_CHECK(file >= 0 && ::ftruncate(file, kWindowBytes) == 0,
              "simulated device: no memory that can be mapped twice");
  host_begin_ = map(kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file);
  device_begin_ = map(kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file);
  ::close(file);
  open_bytes_ = kWindowBytes;
}

char* Arena::allocate(size_t bytes) {
  const size_t rounded =
      std::max(unit_bytes_, (bytes + unit_bytes_ - 1) / unit_bytes_ * unit_bytes_);
  auto best = free_by_size_.lower_bound({rounded, nullptr});
  if (best == free_by_size_.end()) {
    grow(rounded);
    best = free_by_size_.lower_bound({rounded, nullptr});
  }
  const auto [free_bytes, address] = *best;
  free_by_size_.erase(best);
  free_.erase(address);
  if (free_bytes > rounded) add_free(address + rounded, free_bytes - rounded);
  taken_[address] = rounded;
  return address;
}

void Arena::grow(size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, bytes <= kWindowBytes - used_bytes_,
                   "simulated device: no room for ", bytes, " bytes in an arena of ", kWindowBytes);
  if (used_bytes_ + bytes > open_bytes_) {
    const size_t open = std::min(
        kWindowBytes, (used_bytes_ + bytes + kGrowthBytes - 1) / kGrowthBytes * kGrowthBytes);
    TORCH_CHECK_WITH(
        OutOfMemoryError,
        ::mprotect(device_begin_ + open_bytes_, open - open_bytes_, PROT_READ | PROT_WRITE) == 0,
        "simulated device: the host has no ", open, " bytes");
    open_bytes_ = open;
  }
  char* begin = host_begin_ + used_bytes_;
  used_bytes_ += bytes;
  add_free(begin, bytes);
}

void Arena::release(char* address) {
  const auto taken = taken_.find(address);
  const size_t bytes = taken->second;
  taken_.erase(taken);
  add_free(address, bytes);
}

void Arena::add_free(char* begin, size_t bytes) {
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && begin + bytes == after->first) {
    bytes += after->second;
    free_by_size_.erase({after->second, after->first});
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      free_by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  free_[begin] = bytes;
  free_by_size_.insert({bytes, begin});
}

void Arena::protect(char* address, HostAccess access) {
  const int protection = access == HostAccess::None   ? PROT_NONE
                         : access == HostAccess::Read ? PROT_READ
                                                      : PROT_READ | PROT_WRITE;
  TORCH_CHECK(::mprotect(address, taken_.at(address), protection) == 0,
              "simulated device: a pinned block could not be protected");
}

bool Arena::in_host_view(const void* address) const {
  const auto* byte = static_cast<const char*>(address);
  return byte >= host_begin_ && byte < host_begin_ + kWindowBytes;
}

char* Arena::host_view(const void* address) const {
  auto* byte = static_cast<char*>(const_cast<void*>(address));
  if (in_host_view(byte)) return byte;
  if (byte >= device_begin_ && byte < device_begin_ + kWindowBytes)
    return host_begin_ + (byte - device_begin_);
  return nullptr;
}

char* Arena::device_view(const void* address) const {
  char* host = host_view(address);
  return host == nullptr ? nullptr : device_begin_ + (host - host_begin_);
}

}  // namespace convoy::simulated
