// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/row_index/row_slots.h"

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"

namespace convoy::kernels {

std::vector<int64_t> row_slots(const std::vector<int64_t>& slots, const RowIndex& rows,
                               int64_t num_states, const char* op) {
  std::vector<int64_t> chosen = slots;
  if (chosen.empty()) {
    chosen.resize(rows.num_rows());
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  CONVOY_INVARIANT(static_cast<int64_t>(chosen.size()) == rows.num_rows(),
                   "{} needs a slot for each of {} rows, found {}", op, rows.num_rows(),
                   chosen.size());
  std::vector<int64_t> sorted = chosen;
  std::sort(sorted.begin(), sorted.end());
  CONVOY_INVARIANT(sorted.empty() || (sorted.front() >= 0 && sorted.back() < num_states),
                   "{} needs slots from 0 to {}, found {} to {}", op, num_states - 1,
                   sorted.front(), sorted.back());
  CONVOY_INVARIANT(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                   "{} needs another slot for each row", op);
  return chosen;
}

}  // namespace convoy::kernels
