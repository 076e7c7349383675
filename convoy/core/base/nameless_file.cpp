// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/nameless_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

namespace convoy {
namespace {

std::string name_in_proc(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

}  // namespace

int open_nameless(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0644);
  if (descriptor < 0 || ::access(name_in_proc(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

// Containers reuse process numbers, so a dead process may have left a file of that name.
std::filesystem::path free_name_beside(const std::filesystem::path& path) {
  static std::atomic<int> counter{0};
  for (;;) {
    std::filesystem::path name = path;
    name += fmt::format(".tmp-{}-{}", ::getpid(), counter++);
    if (::access(name.c_str(), F_OK) != 0) return name;
  }
}

bool give_name(int descriptor, const std::filesystem::path& name) {
  return ::linkat(AT_FDCWD, name_in_proc(descriptor).c_str(), AT_FDCWD, name.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace convoy
