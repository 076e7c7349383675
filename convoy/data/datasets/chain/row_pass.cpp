// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_pass.h"

namespace convoy::data {

std::vector<ReadRow> read_rows(RowSource& rows, size_t count, int64_t& num_read,
                               std::exception_ptr& later) {
  if (later) std::rethrow_exception(std::exchange(later, nullptr));
  std::vector<ReadRow> turn;
  try {
    while (turn.size() < count) {
      try {
        std::optional<RawRow> raw = rows.next_raw();
        if (!raw) break;
        num_read = raw->row.index + 1;
        turn.push_back({.index = raw->row.index, .raw = std::move(*raw)});
      } catch (const DataError& error) {
        if (!rows.row_is_lost()) throw;
        turn.push_back({.index = num_read++, .error = error});
      }
    }
  } catch (...) {
    if (turn.empty()) throw;
    later = std::current_exception();
  }
  return turn;
}

}  // namespace convoy::data
