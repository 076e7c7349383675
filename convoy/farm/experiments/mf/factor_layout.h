// SPDX-License-Identifier: Apache-2.0
//
// Parts of a problem of `mf`, in the one layout that kernels for CPUs and for GPUs read. Plain
// data.
#pragma once

#include <stdint.h>

namespace convoy::experiments {

enum class MfActivation { Linear, Tanh, LeakyReLU };  // same names as in the flags

struct FactorLayer {
  uint32_t inputs = 0, outputs = 0;  // sizes of the drawn matrix
  uint32_t first_block = 0;          // block of random numbers that holds the layer's first slot
  uint32_t num_slots = 0;
  float scale = 1;
  bool hidden = false;
};

// One residual <coefficients, Y> - target. It uses entries first_entry .. first_entry + num_entries
// - 1 of Y, counted by columns.
struct CheckRow {
  uint32_t first_entry = 0, num_entries = 0;
  uint32_t first_coefficient = 0;
  float target = 0;
};

}  // namespace convoy::experiments
