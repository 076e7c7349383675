// SPDX-License-Identifier: Apache-2.0
#include "convoy/io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "convoy/base/error.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::string holder(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t count = ::pread(descriptor, text.data(), text.size() - 1, 0);
  return count > 0 ? std::string(text.data(), static_cast<size_t>(count)) : "another process";
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path path = folder / ".lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor_ < 0)
    throw IoError(fmt::format("could not open the lock: {}", std::strerror(errno)),
                  {.file = path.string(), .hint = "check that the folder may be written"});
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    const std::string who = holder(descriptor_);
    ::close(descriptor_);
    if (code == EWOULDBLOCK)
      throw ConfigError(
          fmt::format("another run writes to this folder: {}", who),
          {.file = folder.string(), .hint = "wait for it, or choose another output folder"});
    throw IoError(fmt::format("could not lock: {}", std::strerror(code)), {.file = path.string()});
  }
  const std::string text = fmt::format("process {} on {}", ::getpid(), host_name());
  // The text only helps a reader of the message; a full disk must not keep the run from starting.
  if (::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, text.data(), text.size(), 0) < 0)
    return;
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace convoy::io
