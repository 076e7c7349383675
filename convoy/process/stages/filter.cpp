// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/row_values.h"
#include "convoy/process/stages/stage.h"

namespace convoy::process {

void filter(const StageInputs& inputs, RowState& row) {
  if (inputs.plan.conditions.empty()) return;
  const nlohmann::ordered_json figures = filter_figures(row);
  for (const FilterCondition& condition : inputs.plan.conditions)
    if (!condition.holds(figures)) row.failed_conditions.push_back(condition.text());
}

}  // namespace convoy::process
