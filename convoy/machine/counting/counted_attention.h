// SPDX-License-Identifier: Apache-2.0
//
// The counting device's form of LibTorch's attention kernels: flash attention and cuDNN's.
#pragma once

#include <torch/library.h>

namespace convoy::counting {

void register_counted_attention(torch::Library& library);

}  // namespace convoy::counting
