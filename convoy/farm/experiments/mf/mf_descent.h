// SPDX-License-Identifier: Apache-2.0
//
// Full-batch gradient descent on problems of `mf`, in double precision: Y = phi(..phi(W_1) W_2 ..)
// W_depth without the scaling of the guesses. GroupRMSprop: v <- 0.99 v + 0.01 |gradient|^2 over
// all parameters together, and one step size lr / (sqrt(v / (1 - 0.99^t)) + 1e-6) for all of them.
#pragma once

#include <functional>
#include <vector>

#include "convoy/farm/experiments/mf/descent_kernel.h"
#include "convoy/farm/experiments/mf/mf_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

// The weights of each layer in the order [output unit][input].
using MfWeights = std::vector<std::vector<double>>;

// Draws the weights gd_init_scale * U(-1, 1) / sqrt(inputs). Layer l uses guess l of
// Stream::DescentInit.
MfWeights mf_initial_weights(const MfProblem& problem);

// Takes `steps` steps with batches of one shape. Afterwards `outputs` holds the outputs of the last
// layer.
using MfDescend = std::function<void(std::vector<DescentBatch>& batches, int64_t steps)>;
void descend_on_cpu(std::vector<DescentBatch>& batches, int64_t steps);

// Returns one outcome per problem. Eight problems of one shape share the lanes of a vector; an
// outcome has the same bits whatever the other problems are. The losses are computed after the
// update of the last epoch that is divisible by gd_log_period.
std::vector<sweep::CellOutcome> descend_mf(const std::vector<MfProblem>& problems,
                                           const std::vector<MfWeights>& initial,
                                           const MfDescend& descend = descend_on_cpu);

}  // namespace convoy::experiments
