// SPDX-License-Identifier: Apache-2.0
//
// The inner loop of guess-and-check on `mf`: sixteen guesses at a time, one per lane, made and
// checked while their weights are in the first-level cache (factor_loops.inl). There is one table
// of kernels per instruction set; all give the same bits. Thread-safe.
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
  bool reduce = false;  // replaces each hidden layer by the Cholesky factor of its Gram matrix
  std::vector<ChiSeries> diagonal;  // if not empty, hidden layers are triangular
  std::vector<CheckRow> rows;       // sum of their squares = training loss * number of measurements
  std::vector<float> coefficients;
  float limit = 0;  // limit of the sum of squares; infinite if every guess passes

  uint32_t blocks_of(uint32_t slots) const {
    return (slots + slots_per_block - 1) / slots_per_block;
  }
  uint32_t most_units() const;  // largest number of units between two layers
};

// Working memory of one thread, aligned to 64 bytes.
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

// The most slots that are made at a time. Layers with many inputs may exceed it.
inline constexpr uint32_t kSlotsTogether = 192;
// Number of output units made at a time: a multiple of eight, so that no block of slots is needed
// in two groups of units.
uint32_t units_together(uint32_t inputs);

// Computes guesses `first` to `first + 15`; `first` is the lower 32 bits of an index. Returns a
// mask of the guesses that pass. If any guess passes, y[entry * 16 + lane] holds the entries of all
// sixteen matrices, by columns.
using FactorKernel = uint32_t (*)(const FactorSizes& sizes, const AddressTables& tables,
                                  uint32_t first, FactorMemory& memory, float* y);

struct FactorKernels {
  FactorKernel of[2][2];  // index [precision][prior]
};

// Throws StateError for a level this machine cannot run.
FactorKernel factor_kernel(CpuLevel level, Precision precision, MfPrior prior);

}  // namespace convoy::experiments
