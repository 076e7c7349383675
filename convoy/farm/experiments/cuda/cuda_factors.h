// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `mf`, on a GPU: the tallies have the same bits as the tallies
// of mf_guess_experiment() on a CPU, in both precisions.
#pragma once

#include <memory>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/mf/mf_guesses.h"
#include "convoy/farm/experiments/mf/mf_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments::cuda {

// `problem` must use no shortcut. Throws what Driver::check() throws; run() of the experiment does
// so too.
std::unique_ptr<sweep::GuessExperiment> mf_guess_experiment(const MfProblem& problem, MfCheck check,
                                                            Precision precision,
                                                            std::shared_ptr<Device> device);

}  // namespace convoy::experiments::cuda
