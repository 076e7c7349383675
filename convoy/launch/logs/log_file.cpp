// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace convoy::launch {

LogFile::LogFile(std::filesystem::path path, FileStart start, std::chrono::milliseconds retry_wait)
    : path_(std::move(path)), retry_wait_(retry_wait) {
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  const int begin = start == FileStart::Append ? O_APPEND : O_TRUNC | O_APPEND;
  file_ =
      Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | begin, 0644));
  if (!file_.open()) failure_ = errno;
}

bool LogFile::write(std::string_view first, std::string_view second) {
  if (!wanted()) return false;
  const uint64_t size = first.size() + second.size();
  if (failure_ != 0 && (!file_.open() || Clock::now() < retry_at_)) {
    missing_bytes_ += size;
    return false;
  }
  const uint64_t stored_before = stored_bytes_;
  if (failure_ != 0) {
    const std::string gap = fmt::format("\n[convoy: {} bytes are missing here: {}]\n",
                                        missing_bytes_, std::strerror(failure_));
    if (!write_all(gap, {})) {
      missing_bytes_ += size;
      return false;
    }
    failure_ = 0;
    missing_bytes_ = 0;
    stored_bytes_ = stored_before;
  }
  const uint64_t begin = stored_bytes_;
  if (write_all(first, second)) return true;
  missing_bytes_ += size - (stored_bytes_ - begin);
  return false;
}

bool LogFile::write_all(std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    const iovec pieces[2] = {{const_cast<char*>(first.data()), first.size()},
                             {const_cast<char*>(second.data()), second.size()}};
    const ssize_t written = ::writev(file_.get(), pieces, 2);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failure_ = written == 0 ? EIO : errno;
      retry_at_ = Clock::now() + retry_wait_;
      return false;
    }
    const size_t of_first = std::min(static_cast<size_t>(written), first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(static_cast<size_t>(written) - of_first);
    stored_bytes_ += static_cast<uint64_t>(written);
  }
  return true;
}

}  // namespace convoy::launch
