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

// The epochs whose updates count: the value is that before the last epoch divisible by 10.
std::vector<SsmEpoch> ssm_epochs(const SsmDescent& descent);
// The losses at `weights`.
sweep::CellOutcome ssm_outcome(const SsmProblem& problem, const std::vector<double>& weights,
                               size_t steps);

// Updates as the optimizers of PyTorch do. The losses are those before the update of the last epoch
// divisible by 10, after `steps` updates.
sweep::CellOutcome descend_ssm(const SsmProblem& problem, std::vector<double> weights);

}  // namespace convoy::experiments
