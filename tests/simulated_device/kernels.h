// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// Registers the device's ops with LibTorch: ops that make, copy and view tensors, and the CPU's
// kernels for all other ops.
void register_kernels();

}  // namespace convoy::simulated
