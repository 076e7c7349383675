// SPDX-License-Identifier: Apache-2.0
//
// Encodes values as GGUF's blocks. For every type that can be written, it makes the same bytes as
// llama.cpp's reference quantisers (quantize_row_*_ref of ggml-quants.c).
#pragma once

#include <cstddef>
#include <span>

#include "convoy/core/io/gguf/tensor_type.h"

namespace convoy::gguf {

// False for q2_k, q3_k and the types of table_blocks.h.
bool can_encode(TensorType type);

// `values`: finite values of whole blocks. `blocks`: receives the bytes of these blocks.
void encode(TensorType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace convoy::gguf
