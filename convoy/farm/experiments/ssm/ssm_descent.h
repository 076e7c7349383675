// SPDX-License-Identifier: Apache-2.0
//
// Full-batch gradient descent on a problem of `ssm`, in double precision, in an order of operations
// that does not depend on the CPU.
#pragma once

#include "convoy/farm/experiments/ssm/descent_step.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

// The weights before the first update, from Stream::DescentInit.
std::vector<double> initial_weights(const SsmProblem& problem);

// The epochs whose updates count. The final value is the value before the last epoch that is
// divisible by 10.
std::vector<SsmEpoch> ssm_epochs(const SsmDescent& descent);
// The losses at `weights`.
sweep::CellOutcome ssm_outcome(const SsmProblem& problem, const std::vector<double>& weights,
                               size_t steps);

// Updates the weights like the optimizers of PyTorch. The losses are computed after `steps`
// updates, before the update of the last epoch that is divisible by 10.
sweep::CellOutcome descend_ssm(const SsmProblem& problem, std::vector<double> weights);

}  // namespace convoy::experiments
