// SPDX-License-Identifier: Apache-2.0
//
// counter_hash.h in LibTorch's ops, for any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convoy/model/kernels/counter_draws/counter_hash.h"

namespace convoy::kernels {

// counter_hash() of elements `first` to first + count - 1: int64 [count] in 0 ... 2^32 - 1.
at::Tensor counter_words(CounterKey key, int64_t first, int64_t count, at::Device device);

}  // namespace convoy::kernels
