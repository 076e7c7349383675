// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/determinism.h"

#include <ATen/Context.h>

#include <cstdlib>

namespace convoy::device {

void take_deterministic_algorithms() {
  // cuBLAS repeats its results only with a workspace of fixed size. It reads this variable when it
  // is first used.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Filling every new tensor only helps to find reads of memory that was never written.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

}  // namespace convoy::device
