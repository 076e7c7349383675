// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/console_queue.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace convoy::launch {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

bool can_write(int descriptor) {
  pollfd watched{descriptor, POLLOUT, 0};
  return ::poll(&watched, 1, 0) > 0;
}

}  // namespace

ConsoleQueue::ConsoleQueue(int descriptor) : shared_(descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    failure_ = errno;
    return;
  }
  terminal_ = ::isatty(descriptor) == 1;
  if (terminal_) kind_ = Kind::Terminal;
  if (S_ISFIFO(status.st_mode)) kind_ = Kind::Pipe;
  if (S_ISSOCK(status.st_mode)) kind_ = Kind::Socket;
  if (kind_ == Kind::Terminal || kind_ == Kind::Pipe)
    own_ = Descriptor(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                             O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

void ConsoleQueue::flush() {
  // A write to a full disk may succeed later, so writing to a file is tried again. Another console
  // that has failed is not tried again.
  if (failure_ != 0 && kind_ != Kind::File) fail(failure_);
  if (torn_ && waiting()) pending_.insert(written_, 1, '\n');
  torn_ = false;
  while (waiting()) {
    // A write to a shared open file description might block. A pipe that poll() calls writable
    // takes PIPE_BUF bytes.
    if (!own_.open() && kind_ != Kind::File && !can_write(shared_)) return;
    const char* const begin = pending_.data() + written_;
    const size_t size = next_piece();
    const ssize_t sent = kind_ == Kind::Socket
                             ? ::send(shared_, begin, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                             : ::write(descriptor(), begin, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) {
      fail(errno);
      return;
    }
    written_ += static_cast<size_t>(sent);
    failure_ = 0;
  }
  if (!waiting()) {
    pending_.clear();
    written_ = 0;
  } else if (written_ >= kBehindBytes) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

size_t ConsoleQueue::next_piece() const {
  const std::string_view rest = std::string_view(pending_).substr(written_);
  const size_t most = kind_ == Kind::File || kind_ == Kind::Socket ? kPieceBytes : PIPE_BUF;
  if (rest.size() <= most) return rest.size();
  const size_t last_end = rest.rfind('\n', most - 1);
  if (last_end != std::string_view::npos) return last_end + 1;
  return own_.open() || kind_ == Kind::File ? std::min(rest.find('\n'), rest.size() - 1) + 1 : most;
}

void ConsoleQueue::fail(int error) {
  failure_ = error;
  torn_ = written_ > 0 && pending_[written_ - 1] != '\n';
  pending_.clear();
  written_ = 0;
}

bool same_file(int one, int other) {
  struct stat first {};
  struct stat second {};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace convoy::launch
