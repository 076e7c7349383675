// SPDX-License-Identifier: Apache-2.0
//
// Values of GGUF's blocks in fp32, in the order of llama.cpp's reference (ggml-quants.c), whose
// results are equal to the bit.
#pragma once

#include <cstddef>
#include <span>

#include "convoy/core/io/gguf/tensor_type.h"

namespace convoy::gguf {

// `blocks`: whole blocks of `type`; `values`: as many as they hold.
void decode(TensorType type, std::span<const std::byte> blocks, std::span<float> values);

}  // namespace convoy::gguf
