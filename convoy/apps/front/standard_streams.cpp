// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "convoy/core/base/broken_pipes.h"

namespace convoy::apps {

void open_standard_streams() {
  // open() returns the lowest free descriptor, so the closed streams are filled in this order.
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);
}

void write_to_stderr(std::string_view text) {
  const BlockedBrokenPipes blocked;
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
    if (written <= 0 && errno != EINTR) break;
  }
}

}  // namespace convoy::apps
