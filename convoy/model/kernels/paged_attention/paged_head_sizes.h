// SPDX-License-Identifier: Apache-2.0
//
// The heads that the kernels of paged attention on GPUs take.
#pragma once

#include <cstdint>

namespace convoy::kernels {

// Do these kernels take heads of so many features? They read the lengths of rows on the GPU. For
// other heads paged_attention() takes the lengths from the host, so a recorded step would keep old
// lengths.
bool fits_paged_kernels(int64_t head_dim);

}  // namespace convoy::kernels
