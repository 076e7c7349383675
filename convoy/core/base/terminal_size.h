// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace convoy {

struct TerminalSize {
  int64_t columns = 0;  // 0: not known
  int64_t rows = 0;
};

// The size of the terminal at `descriptor`. If the descriptor is no terminal, the variable COLUMNS
// gives the columns.
TerminalSize terminal_size(int descriptor);

}  // namespace convoy
