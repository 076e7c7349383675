// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/random_bytes.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy {

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::getrandom(bytes.data() + filled, count - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw IoError(fmt::format("the kernel gave no random bytes: {}", std::strerror(errno)),
                    {.hint = "allow the system call getrandom in this container"});
    filled += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace convoy
