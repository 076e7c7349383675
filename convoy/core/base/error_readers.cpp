// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error_readers.h"

#include <unistd.h>

namespace convoy {

ErrorReaders error_readers(bool json) {
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  return {.people = !on_terminal || !json, .programs = !on_terminal || json};
}

}  // namespace convoy
