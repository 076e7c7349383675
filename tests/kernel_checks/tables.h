// SPDX-License-Identifier: Apache-2.0
//
// Chooses the table of ops that the tests of this process run, by CONVOY_TEST_OPS: `aten` is other
// devices' ATen calls on CPU tensors, `ptx` Convoy's CUDA kernels on CPU tensors (tests/fake_cuda),
// `sim` the ATen calls on the simulated device, and `cuda` a GPU's table.
#pragma once

#include <cstdlib>
#include <string>

namespace convoy::testing {

inline std::string chosen_ops() {
  const char* const chosen = std::getenv("CONVOY_TEST_OPS");
  return chosen == nullptr ? "" : chosen;
}

inline bool runs_cpu_table() { return chosen_ops().empty(); }

}  // namespace convoy::testing
