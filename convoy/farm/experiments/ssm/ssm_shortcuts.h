// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on `ssm` with fewer random numbers. Acceptance and losses have the distribution
// of plain guessing, exactly; the guesses are others, so results carry the shortcut's name in their
// cell.
//
// two_randoms, sequence_length 2 or 3: the loss depends only on sum a and sum a^2. sum a = sd
// sqrt(d) z, and the rest of sum a^2 / sd^2 is chi-square of d - 1 degrees of freedom, independent
// of z. projection, where the training loss depends on sum a alone: that sum is drawn first, as one
// normal, and the weights of guesses that pass are plain ones moved to it, a_j + (sum - sum_i a_i)
// / d: deviations from the mean do not depend on it.
#pragma once

#include <memory>
#include <string>

#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

// Why the problem does not allow the shortcut; empty when it does.
std::string shortcut_refusal(const SsmProblem& problem, SsmShortcut shortcut);
// The one with the fewest random numbers.
SsmShortcut best_shortcut(const SsmProblem& problem);

// The experiment for problem.parameters.shortcut, which is not None. Throws ConfigError with the
// refusal, StateError for a level this machine cannot run.
std::unique_ptr<sweep::GuessExperiment> shortcut_experiment(const SsmProblem& problem,
                                                            Precision precision, CpuLevel level);

}  // namespace convoy::experiments
