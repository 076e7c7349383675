// SPDX-License-Identifier: Apache-2.0
//
// GGUF's blocks from values: the bytes of llama.cpp's reference quantisers (quantize_row_*_ref of
// ggml-quants.c) for every type that is written.
#pragma once

#include <cstddef>
#include <span>

#include "convoy/core/io/gguf/tensor_type.h"

namespace convoy::gguf {

// No q2_k and q3_k, and none of table_blocks.h.
bool can_encode(TensorType type);

// `values`: whole blocks, finite; `blocks`: the bytes of as many.
void encode(TensorType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace convoy::gguf
