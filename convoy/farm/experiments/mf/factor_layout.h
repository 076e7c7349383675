// SPDX-License-Identifier: Apache-2.0
//
// The parts of a problem of `mf` that kernels of CPUs and GPUs read in the same form. Plain data.
#pragma once

#include <stdint.h>

namespace convoy::experiments {

enum class MfActivation { Linear, Tanh, LeakyReLU };  // the same words

struct FactorLayer {
  uint32_t inputs = 0, outputs = 0;  // as drawn
  uint32_t first_block = 0;          // block where its slots begin
  uint32_t num_slots = 0;
  float scale = 1;
  bool hidden = false;
};

// One residual <coefficients, Y> - target, of entries first_entry .. first_entry + num_entries - 1.
// Entries are counted by columns.
struct CheckRow {
  uint32_t first_entry = 0, num_entries = 0;
  uint32_t first_coefficient = 0;
  float target = 0;
};

}  // namespace convoy::experiments
