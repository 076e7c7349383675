// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on one problem of `mf`: Y = I; Y <- phi(Y W / sqrt(width)) for each hidden layer;
// Y <- Y W / sqrt(n_cols). A guess passes when its training loss is below gnc_eps_train.
#pragma once

#include <memory>

#include "convoy/farm/experiments/mf/mf_problem.h"
#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

enum class MfCheck {
  TrainLoss,
  Nothing,  // every guess passes: the mean loss is that of the prior
};

// The weights come from Stream::Guess, layer after layer. Each layer begins with a new block of
// slots and is ordered by output unit, then by input. Throws StateError for a level that this
// machine cannot run.
std::unique_ptr<sweep::GuessExperiment> mf_guess_experiment(const MfProblem& problem, MfCheck check,
                                                            Precision precision, CpuLevel level);

}  // namespace convoy::experiments
