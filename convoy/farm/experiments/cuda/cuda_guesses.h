// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `ssm`, on a GPU: the tallies have the same bits as the tallies
// of guess_experiment() on a CPU, in both precisions.
#pragma once

#include <memory>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments::cuda {

// The smallest size, in guesses, of the buffer for accepted guesses. A launch on a GPU with little
// memory has only this many guesses, because all of them may pass.
inline constexpr uint32_t kLeastGuesses = 1u << 16;

// Throws what Driver::check() throws; run() of the experiment does so too.
std::unique_ptr<sweep::GuessExperiment> guess_experiment(const SsmProblem& problem,
                                                         Precision precision,
                                                         std::shared_ptr<Device> device);

}  // namespace convoy::experiments::cuda
