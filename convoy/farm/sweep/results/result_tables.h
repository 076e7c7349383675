// SPDX-License-Identifier: Apache-2.0
//
// The tables of a sweep's results that people read: a column for each parameter that varies, for
// each result by its name, and for nothing that no row has.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

struct TableOptions {
  bool every_cell = false;  // else of each state but Value the first ten cells, with their number
  int64_t width = 0;        // the terminal's, see fitted_table(); 0 = any width
};

// A row per method and choice of values with median, quartiles and counts over seeds; then a row
// per cell with its 95 % interval and what is to be said of it.
std::string table_text(const SweepResults& results, const TableOptions& options = {});

// The cell with the least (or greatest) first result; null where none has a value.
const CellResult* best_cell(const SweepResults& results, bool greatest);
// "loss 0.25 with layers=2 lr=0.01, seed 1".
std::string best_text(const SweepResults& results, const CellResult& best);

}  // namespace convoy::sweep
