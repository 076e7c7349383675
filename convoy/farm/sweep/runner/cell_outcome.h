// SPDX-License-Identifier: Apache-2.0
//
// Converts a cell's final result to the form in which the store keeps it, and back.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/jobs/task.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

// The effort that a result cost.
struct Effort {
  int64_t microseconds = 0;  // sum over all workers
  int64_t attempts = 1;
  std::string device;
};

// Censored if no guess passed. Failed if guesses are missing, and if guesses passed but no loss is
// a finite number; such a cell never gets a number.
jobs::Result guess_result(const PlannedCell& planned, const Tally& tally, const Effort& effort);
// Failed if the value is not a finite number; censored if the program was pruned.
jobs::Result outcome_result(const CellOutcome& outcome, const Effort& effort);

// Texts of the cell before, which are shared if the new texts are equal.
struct LikelyTexts {
  SharedText device = {};
  SharedText program = {};
};

// The state, numbers and effort of a task with its result. Does not set `reference`. A result that
// lacks guesses counts as a failure; earlier versions of Convoy could store such results. Throws
// DataError.
CellResult cell_result(const PlannedCell& planned, const jobs::TaskRecord& record,
                       const LikelyTexts& likely = {});

// The hardware that this host computes with, such as "AMD EPYC 7B13, 2 of 8 cores".
std::string device_name();

}  // namespace convoy::sweep
