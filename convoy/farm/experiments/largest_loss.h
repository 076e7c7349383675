// SPDX-License-Identifier: Apache-2.0
//
// Read by kernels of GPUs too.
#pragma once

namespace convoy::experiments {

// Losses from here on leave the range of the exact sums: counted as not finite.
inline constexpr double kLargestLoss = 0x1p40;

}  // namespace convoy::experiments
