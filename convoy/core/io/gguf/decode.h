// SPDX-License-Identifier: Apache-2.0
//
// Decodes GGUF's blocks to fp32. The operations have the order of llama.cpp's reference
// (ggml-quants.c), so the results are equal to the bit.
#pragma once

#include <cstddef>
#include <span>

#include "convoy/core/io/gguf/tensor_type.h"

namespace convoy::gguf {

// `blocks`: whole blocks of `type`. `values`: receives all values of these blocks.
void decode(TensorType type, std::span<const std::byte> blocks, std::span<float> values);

}  // namespace convoy::gguf
