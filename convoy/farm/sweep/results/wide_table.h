// SPDX-License-Identifier: Apache-2.0
//
// The results of programs as a wide table: a row for each choice of values, a column for each
// result and seed. Pure function.
#pragma once

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// Columns: the names of the grid, then for each result the columns `RESULT_seed=S`, ordered by
// seed. The rows are in the order of the cells. A failed or unfinished cell is empty and a pruned
// cell is `nan`, as in the tables of the built-in experiments.
std::string wide_csv(const SweepResults& results);

}  // namespace convoy::sweep
