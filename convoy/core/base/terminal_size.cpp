// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/terminal_size.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/text_as.h"

namespace convoy {

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return {.columns = size.ws_col, .rows = size.ws_row};
  const auto columns = text_as<int64_t>(environment_text("COLUMNS"));
  return {.columns = std::max<int64_t>(0, columns.value_or(0))};
}

}  // namespace convoy
