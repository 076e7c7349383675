// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// Gives LibTorch the device's ops: what makes, copies and views tensors, and the CPU's kernels for
// all else.
void register_kernels();

}  // namespace convoy::simulated
