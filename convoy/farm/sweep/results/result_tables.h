// SPDX-License-Identifier: Apache-2.0
//
// The tables of a sweep's results for people: one column for each parameter that varies, and one
// for each result, by its name. A column without any value is left out.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

struct TableOptions {
  // False: lists only the first ten cells of each state but Value, and counts the rest.
  bool every_cell = false;
  int64_t width = 0;  // width of the terminal, see fitted_table(); 0 = any width
};

// First one row per method and choice of values, with median, quartiles and counts over seeds. Then
// one row per cell, with its 95 % interval and remarks on the cell.
std::string table_text(const SweepResults& results, const TableOptions& options = {});

// The cell with the least (or greatest) first result; null if no cell has a value.
const CellResult* best_cell(const SweepResults& results, bool greatest);
// Describes the best cell, as in "loss 0.25 with layers=2 lr=0.01, seed 1".
std::string best_text(const SweepResults& results, const CellResult& best);

}  // namespace convoy::sweep
