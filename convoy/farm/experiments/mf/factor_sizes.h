// SPDX-License-Identifier: Apache-2.0
//
// Makes the sizes of a problem that the kernels of `mf` read.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/mf/factor_kernels.h"
#include "convoy/farm/experiments/mf/mf_guesses.h"

namespace convoy::experiments {

// Normals of Precision::Fast come eight to a block.
FactorSizes factor_sizes(const MfProblem& problem, MfCheck check, Precision precision);

// The first place from `memory` on that is a multiple of 64 bytes; needs 15 floats more than are
// used.
float* aligned_to_lanes(float* memory);

// Y [n_rows, n_cols] of one guess; `y` [n_cols, n_rows, kFactorGuesses] holds the guesses of a
// block.
std::vector<double> rows_of_guess(const FactorSizes& sizes, const float* y, uint32_t lane);

}  // namespace convoy::experiments
