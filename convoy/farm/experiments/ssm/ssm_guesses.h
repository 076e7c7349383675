// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `ssm`.
#pragma once

#include <memory>

#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

// Guesses without a shortcut, even if the problem has one. Throws StateError for a level that this
// machine cannot run.
std::unique_ptr<sweep::GuessExperiment> guess_experiment(const SsmProblem& problem,
                                                         Precision precision, CpuLevel level);

}  // namespace convoy::experiments
