// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `ssm`.
#pragma once

#include <memory>

#include "convoy/sweep/random/cpu_level.h"
#include "convoy/sweep/ssm/ssm_problem.h"
#include "convoy/sweep/workload.h"

namespace convoy::sweep {

// Counts one accepted guess.
void add_guess_loss(double loss, Tally& tally);

// Of plain guesses, whatever the problem's shortcut. Throws StateError for a level this machine cannot run.
std::unique_ptr<GuessExperiment> guess_experiment(const SsmProblem& problem, Precision precision,
                                                  CpuLevel level);

}  // namespace convoy::sweep
