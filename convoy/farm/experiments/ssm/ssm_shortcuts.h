// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check on `ssm` with fewer random numbers. Acceptance and losses have exactly the
// distribution of plain guessing. The single guesses differ, so a result has the shortcut's name in
// its cell.
//
// two_randoms, sequence_length 2 or 3: the loss depends only on sum a and sum a^2. sum a = sd
// sqrt(d) z, and the rest of sum a^2 / sd^2 is chi-square of d - 1 degrees of freedom, independent
// of z. projection, where the training loss depends only on sum a: sum a is drawn first, as one
// normal number. For guesses that pass, plain weights are drawn and shifted to that sum, a_j + (sum
// - sum_i a_i) / d. This is exact because the deviations from the mean are independent of the sum.
#pragma once

#include <memory>
#include <string>

#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

// The reason why the problem does not allow the shortcut; empty if it does.
std::string shortcut_refusal(const SsmProblem& problem, SsmShortcut shortcut);
// The allowed shortcut that draws the fewest random numbers.
SsmShortcut best_shortcut(const SsmProblem& problem);

// The experiment for problem.parameters.shortcut, which must not be None. Throws ConfigError with
// the reason if the shortcut is not allowed, and StateError for a level that this machine cannot
// run.
std::unique_ptr<sweep::GuessExperiment> shortcut_experiment(const SsmProblem& problem,
                                                            Precision precision, CpuLevel level);

}  // namespace convoy::experiments
