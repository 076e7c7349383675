// SPDX-License-Identifier: Apache-2.0
//
// A cell's one final result as the store keeps it, and back.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/jobs/task.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

// The effort behind a result, beside its numbers.
struct Effort {
  int64_t microseconds = 0;  // summed over all workers
  int64_t attempts = 1;
  std::string device;
};

// Censored where nothing passed; failed where only losses that are no numbers did, never a number
// in their place, and where guesses are missing.
jobs::Result guess_result(const PlannedCell& planned, const Tally& tally, const Effort& effort);
// Failed where the value is no finite number; censored where the program was pruned.
jobs::Result outcome_result(const CellOutcome& outcome, const Effort& effort);

// Texts of the cell before: equal texts are shared.
struct LikelyTexts {
  SharedText device = {};
  SharedText program = {};
};

// The state, numbers and effort of a task with its result; `reference` is left alone. A result that
// lacks guesses, as versions of Convoy before this rule could store it, is a failure. Throws
// DataError.
CellResult cell_result(const PlannedCell& planned, const jobs::TaskRecord& record,
                       const LikelyTexts& likely = {});

// "AMD EPYC 7B13, 2 of 8 cores": what the host computes with.
std::string device_name();

}  // namespace convoy::sweep
