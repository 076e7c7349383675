// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `ssm`, on a GPU: the same tallies as guess_experiment() of a
// CPU, bit for bit, in both precisions.
#pragma once

#include <memory>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments::cuda {

// Guesses of one launch where the GPU has little room to note that all of them pass.
inline constexpr uint32_t kLeastGuesses = 1u << 16;

// Throws what Driver::check does, from run() too.
std::unique_ptr<sweep::GuessExperiment> guess_experiment(const SsmProblem& problem,
                                                         Precision precision,
                                                         std::shared_ptr<Device> device);

}  // namespace convoy::experiments::cuda
