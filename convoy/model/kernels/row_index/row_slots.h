// SPDX-License-Identifier: Apache-2.0
//
// Assigns a state to each row of a pass, for ops that keep states from pass to pass.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/model/kernels/row_index/row_index.h"

namespace convoy::kernels {

// One slot for each row: `slots`, or the row's own number where `slots` is empty. Throws StateError
// for another number of slots, for slots from `num_states` on, and for a slot that two rows have;
// `op` names the caller.
std::vector<int64_t> row_slots(const std::vector<int64_t>& slots, const RowIndex& rows,
                               int64_t num_states, const char* op);

}  // namespace convoy::kernels
