// SPDX-License-Identifier: Apache-2.0
//
// The data that the host and the kernels of factor_kernels.cu exchange: plain structs of the same
// layout on both sides. Pointers are addresses on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/farm/experiments/cuda/launch_parts.h"
#include "convoy/farm/experiments/mf/factor_layout.h"
#include "convoy/farm/experiments/random/address_constants.h"

namespace convoy::experiments::cuda {

// Matrices with this many rows and columns, as in the papers, have their own kernels.
inline constexpr uint32_t kPaperSide = 5;

// Matrices are stored by columns. A unit of a hidden layer is stored like a column.
struct FactorLaunch {
  AddressConstants address;
  const SlotWords* slots = nullptr;
  const FactorLayer* layers = nullptr;
  uint32_t num_layers = 0;
  uint32_t n_rows = 0, n_cols = 0;
  MfActivation activation = MfActivation::Linear;
  float negative_slope = 0;
  uint32_t normalize = 0;  // 0 or 1
  float softening = 0;

  uint32_t first_guess = 0;  // lower 32 bits of the first guess's index
  uint32_t num_guesses = 0;

  uint32_t num_rows = 0;  // rows that the check compares
  const CheckRow* rows = nullptr;
  const float* coefficients = nullptr;
  float limit = 0;

  uint32_t num_span = 0, num_tested = 0;
  const double* truth = nullptr;  // row by row, like the matrices of `span`
  const double* span = nullptr;

  // Each block of threads has two matrices of `matrix_values` floats and one matrix of n_rows *
  // n_cols doubles. The values of the threads are interleaved: value 0 of all threads, then value 1
  // of all threads, and so on.
  float* memory = nullptr;
  uint32_t matrix_values = 0;
  LossSums* sums = nullptr;  // array of kSumSlots
};

// Number of floats in FactorLaunch::memory per thread.
constexpr uint64_t memory_values(uint32_t matrix_values, uint32_t num_entries) {
  return 2 * (uint64_t{matrix_values} + num_entries);
}

// Both compilers must agree on these sizes.
static_assert(sizeof(FactorLaunch) == 320 && sizeof(FactorLayer) == 24 && sizeof(CheckRow) == 16);

}  // namespace convoy::experiments::cuda
