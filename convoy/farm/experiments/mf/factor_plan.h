// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of `mf` are told of a problem.
#pragma once

#include "convoy/farm/experiments/mf/factor_kernels.h"
#include "convoy/farm/experiments/mf/mf_guesses.h"

namespace convoy::experiments {

// Normals of Precision::Fast come eight to a block.
FactorPlan factor_plan(const MfProblem& problem, MfCheck check, Precision precision);

// The first place from `memory` on that is a multiple of 64 bytes; needs 15 floats more than are
// used.
float* aligned_to_lanes(float* memory);

}  // namespace convoy::experiments
