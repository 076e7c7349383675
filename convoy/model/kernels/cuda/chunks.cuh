// SPDX-License-Identifier: Apache-2.0
//
// Tensors of many sizes, shared out over blocks in chunks of one size.
#pragma once

#include "convoy/machine/nvidia/device_functions.cuh"

namespace convoy::kernels::gpu {

// The last of `count` tensors that begins at or before `chunk`; `first_chunk` is ascending.
template <class First>
CONVOY_DEVICE uint32_t owner_of_chunk(const First* first_chunk, uint32_t count, uint64_t chunk) {
  uint32_t first = 0, end = count;
  while (end - first > 1) {
    const uint32_t middle = (first + end) / 2;
    if (first_chunk[middle] <= chunk)
      first = middle;
    else
      end = middle;
  }
  return first;
}

}  // namespace convoy::kernels::gpu
