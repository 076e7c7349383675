// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void Descriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw IoError(fmt::format("could not create a pipe: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace convoy
