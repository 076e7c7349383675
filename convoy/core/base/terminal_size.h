// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace convoy {

struct TerminalSize {
  int64_t columns = 0;  // 0: not known
  int64_t rows = 0;
};

// The size of the terminal that this descriptor is. Where it is none, the columns are those of the
// variable COLUMNS.
TerminalSize terminal_size(int descriptor);

}  // namespace convoy
