// SPDX-License-Identifier: Apache-2.0
//
// Makes the sizes of a problem that the kernels of `mf` read.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/mf/factor_kernels.h"
#include "convoy/farm/experiments/mf/mf_guesses.h"

namespace convoy::experiments {

// `precision` decides the layout of the slots: Precision::Fast makes eight normals from a block.
FactorSizes factor_sizes(const MfProblem& problem, MfCheck check, Precision precision);

// The first address from `memory` on that is a multiple of 64 bytes. `memory` needs room for 15
// floats more than are used.
float* aligned_to_lanes(float* memory);

// Y [n_rows, n_cols] of the guess in lane `lane`. `y` [n_cols, n_rows, kFactorGuesses] holds the
// matrices of all lanes.
std::vector<double> rows_of_guess(const FactorSizes& sizes, const float* y, uint32_t lane);

}  // namespace convoy::experiments
