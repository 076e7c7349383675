// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/factor_kernels.h"

#include <algorithm>

namespace convoy::experiments {

CONVOY_DECLARE_AT_EACH_LEVEL(FactorKernels, kFactorKernels)

namespace {

const FactorKernels& kernels(CpuLevel level) {
  return of_cpu_level(level, scalar::kFactorKernels, avx2::kFactorKernels, avx512::kFactorKernels);
}

}  // namespace

FactorKernel factor_kernel(CpuLevel level, Precision precision, MfPrior prior) {
  return kernels(level).of[static_cast<int>(precision)][static_cast<int>(prior)];
}

uint32_t units_together(uint32_t inputs) { return std::max(8u, kSlotsTogether / inputs / 8 * 8); }

uint32_t FactorSizes::most_units() const {
  uint32_t most = n_rows;
  for (const FactorLayer& layer : layers) most = std::max(most, layer.outputs);
  return most;
}

FactorMemory::FactorMemory(const FactorSizes& sizes) {
  size_t slots = 0;
  for (const FactorLayer& layer : sizes.layers)
    slots =
        std::max(slots, sizes.diagonal.empty() ? size_t{units_together(layer.inputs)} * layer.inputs
                                               : size_t{layer.num_slots});
  slots = (slots + kPackedSlotsPerBlock - 1) / kPackedSlotsPerBlock * kPackedSlotsPerBlock;
  const size_t units = size_t{sizes.most_units()} * sizes.n_rows;
  const size_t unpacked = sizes.diagonal.empty() ? 0 : size_t{sizes.n_rows} * sizes.n_rows;
  storage_.resize((slots + unpacked + 2 * units + 1) * kFactorGuesses);
  if (sizes.reduce) factor_.resize(size_t{sizes.n_rows} * sizes.n_rows * kFactorGuesses);
  const size_t misfit = (reinterpret_cast<uintptr_t>(storage_.data()) / sizeof(float)) % 16;
  weights_ = storage_.data() + (16 - misfit) % 16;
  unpacked_ = weights_ + slots * kFactorGuesses;
  units_[0] = unpacked_ + unpacked * kFactorGuesses;
  units_[1] = units_[0] + units * kFactorGuesses;
}

}  // namespace convoy::experiments
