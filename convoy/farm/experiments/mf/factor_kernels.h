// SPDX-License-Identifier: Apache-2.0
//
// The inner loop of guess-and-check on `mf`: sixteen guesses at a time, one per lane, made and
// checked while their weights are in the first cache (factor_loops.inl). One table per instruction
// set, the same bits from each. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/mf/factor_layout.h"
#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/random/address_tables.h"
#include "convoy/farm/experiments/random/chi_series.h"
#include "convoy/farm/experiments/random/cpu_level.h"

namespace convoy::experiments {

inline constexpr uint32_t kFactorGuesses = 16;

// The constants of a problem that a kernel reads; made once per experiment.
struct FactorSizes {
  uint32_t n_rows = 0, n_cols = 0;
  std::vector<FactorLayer> layers;
  uint32_t slots_per_block = kSlotsPerBlock;
  uint32_t num_blocks = 0;
  MfActivation activation = MfActivation::Linear;
  float negative_slope = 0;
  MfPrior prior = MfPrior::Gauss;
  bool normalize = false;
  float softening = 0;
  bool reduce = false;  // to the Cholesky factor of the Gram matrix after each hidden layer
  std::vector<ChiSeries> diagonal;  // not empty: hidden layers are triangular
  std::vector<CheckRow> rows;       // the sum of their squares is the training loss times its count
  std::vector<float> coefficients;
  float limit = 0;  // the sum's limit; infinite if every guess passes

  uint32_t blocks_of(uint32_t slots) const {
    return (slots + slots_per_block - 1) / slots_per_block;
  }
  uint32_t most_units() const;  // largest number of units between two layers
};

// Memory of one thread, aligned to 64 bytes.
class FactorMemory {
 public:
  explicit FactorMemory(const FactorSizes& sizes);
  float* weights() { return weights_; }
  float* units(int which) { return units_[which]; }
  float* unpacked() { return unpacked_; }
  double* factor() { return factor_.data(); }

 private:
  std::vector<float> storage_;
  std::vector<double> factor_;
  float *weights_ = nullptr, *unpacked_ = nullptr, *units_[2] = {};
};

// Most slots that are made at a time, but for layers with many inputs.
inline constexpr uint32_t kSlotsTogether = 192;
// Output units made at a time: a multiple of eight, so that blocks do not straddle two turns.
uint32_t units_together(uint32_t inputs);

// Guesses `first` to `first + 15`, lower halves of the indices. Returns which of them pass; where
// any does, y[entry * 16
// + lane] holds their entries by columns.
using FactorKernel = uint32_t (*)(const FactorSizes& sizes, const AddressTables& tables,
                                  uint32_t first, FactorMemory& memory, float* y);

struct FactorKernels {
  FactorKernel of[2][2];  // [precision][prior]
};

// Throws StateError for a level this machine cannot run.
FactorKernel factor_kernel(CpuLevel level, Precision precision, MfPrior prior);

}  // namespace convoy::experiments
