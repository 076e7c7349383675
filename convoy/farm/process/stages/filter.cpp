// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {
namespace {

// Conditions are checked when rows are published, so a user can change them without computing
// again.
void filter(const StageInputs&, RowState& row) { row.figures = filter_figures(row); }

}  // namespace

Stage filter_stage() {
  return {.name = "filter", .summary = "rejects rows that miss a condition", .of_row = filter};
}

}  // namespace convoy::process
