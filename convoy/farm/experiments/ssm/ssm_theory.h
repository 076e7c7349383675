// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of `ssm`. S_m = sum_j a_j^m - T_m has mean mu_m = d sd^m J_m - T_m and covariance
// d sd^(m+n) (J_(m+n) - J_m J_n), J_m = (m - 1)!! for even m and 0 else.
#pragma once

#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

sweep::ReferenceCurve ssm_theory(const SsmProblem& problem);

}  // namespace convoy::experiments
