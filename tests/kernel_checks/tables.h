// SPDX-License-Identifier: Apache-2.0
//
// The table of ops that the tests of this process run. CONVOY_TEST_OPS=aten takes the ATen calls of
// other devices on CPU tensors, `ptx` our CUDA kernels there (tests/fake_cuda), `sim` the ATen
// calls on the simulated device, `cuda` a GPU's table.
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
