// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `mf`, on a GPU: the same tallies as mf_guess_experiment() of a
// CPU, bit for bit, in both precisions.
#pragma once

#include <memory>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/mf/mf_guesses.h"
#include "convoy/farm/experiments/mf/mf_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments::cuda {

// The problem has no shortcut. Throws what Driver::check does, from run() too.
std::unique_ptr<sweep::GuessExperiment> mf_guess_experiment(const MfProblem& problem, MfCheck check,
                                                            Precision precision,
                                                            std::shared_ptr<Device> device);

}  // namespace convoy::experiments::cuda
