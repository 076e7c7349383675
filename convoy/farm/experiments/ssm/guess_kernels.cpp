// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/guess_kernels.h"

#include "convoy/core/base/error.h"

namespace convoy::experiments {

CONVOY_DECLARE_AT_EACH_LEVEL(GuessKernels, kGuessKernels)

namespace {

const GuessKernels& kernels(CpuLevel level) {
  return of_cpu_level(level, scalar::kGuessKernels, avx2::kGuessKernels, avx512::kGuessKernels);
}

}  // namespace

PowerSums power_sums(CpuLevel level, Precision precision, uint32_t mask) {
  CONVOY_INVARIANT(mask > 0 && mask < 1u << kMaxGuessPower, "powers {:#x}", mask);
  const uint32_t set = mask < 1u << 4 ? mask - 1 : mask < 1u << 6 ? 15 : mask < 1u << 8 ? 16 : 17;
  return kernels(level).sums[static_cast<int>(precision)][set];
}

}  // namespace convoy::experiments
