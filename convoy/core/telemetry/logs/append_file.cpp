// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace convoy::telemetry {

AppendFile::AppendFile(std::filesystem::path path, const Log& log)
    : path_(std::move(path)), log_(log) {
  std::error_code ignored;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), ignored);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("open", errno);
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool AppendFile::append(std::string_view record) {
  struct stat before {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &before) != 0) return false;
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t count = ::write(descriptor_, record.data() + done, record.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int code = count < 0 ? errno : ENOSPC;
      // A partial record would corrupt the next one.
      if (done > 0 && S_ISREG(before.st_mode) && ::ftruncate(descriptor_, before.st_size) != 0)
        log_.detail(fmt::format("could not remove an incomplete record from {}", path_.string()));
      fail("write", code);
      return false;
    }
    done += static_cast<size_t>(count);
  }
  return true;
}

void AppendFile::fail(std::string_view what, int code) {
  if (std::exchange(warned_, true)) return;
  log_.warning(fmt::format("could not {} {}: {}; the run goes on without these records", what,
                           path_.string(), std::strerror(code)));
}

}  // namespace convoy::telemetry
