// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/shared_counts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"

namespace convoy::telemetry {
namespace {

size_t bytes_of(int size) { return static_cast<size_t>(size) * sizeof(int64_t); }

}  // namespace

SharedCounts::SharedCounts(const std::filesystem::path& path, int size) : size_(size) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // All processes set the same length, so their order does not matter.
  void* pages = MAP_FAILED;
  if (file.get() >= 0 && ::ftruncate(file.get(), static_cast<off_t>(bytes_of(size))) == 0)
    pages = ::mmap(nullptr, bytes_of(size), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (pages == MAP_FAILED)
    throw IoError(fmt::format("could not share a file of counters: {}", std::strerror(errno)),
                  {.file = path.string(), .hint = "check free space and permissions"});
  counts_ = static_cast<int64_t*>(pages);
}

SharedCounts::~SharedCounts() { ::munmap(counts_, bytes_of(size_)); }

void SharedCounts::set(int index, int64_t count) {
  std::atomic_ref(counts_[index]).store(count, std::memory_order_relaxed);
}

int64_t SharedCounts::sum() const {
  int64_t total = 0;
  for (int index = 0; index < size_; ++index)
    total += std::atomic_ref(counts_[index]).load(std::memory_order_relaxed);
  return total;
}

}  // namespace convoy::telemetry
