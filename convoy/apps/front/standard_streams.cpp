// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace convoy::apps {

void open_standard_streams() {
  // open() returns the lowest free descriptor, so the closed streams are filled in this order.
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);
}

void write_to_stderr(std::string_view text) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
    if (written <= 0 && errno != EINTR) break;
  }
  const timespec now{};
  // Takes a pending SIGPIPE, which would arrive with the old mask.
  ::sigtimedwait(&pipe, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace convoy::apps
