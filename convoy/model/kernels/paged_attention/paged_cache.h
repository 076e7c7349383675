// SPDX-License-Identifier: Apache-2.0
//
// Keys and values of one layer in blocks of equal length. The blocks of a row may lie in any order.
// The layout within a block is the device's own: store_paged() writes it and paged_attention()
// reads it in place. One thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>

namespace convoy::kernels {

// A block holds a multiple of this many tokens.
inline constexpr int64_t kBlockTokensStep = 32;

enum class CacheElement {
  Model,  // fp32 or bf16, as the model computes
  Int8,   // with one scale per token and head
};

struct PagedShape {
  int64_t num_blocks = 0;
  int64_t block_tokens = kBlockTokensStep;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
};

// Copies share the memory.
struct PagedCache {
  PagedShape shape;
  CacheElement element = CacheElement::Model;
  at::ScalarType dtype = at::kFloat;  // type of the keys and values that go in and out
  at::Tensor keys = {};               // first dimension: blocks; here and below
  at::Tensor values = {};
  at::Tensor key_scales = {};  // fp32; undefined unless Int8
  at::Tensor value_scales = {};
};

// `model`: dtype (fp32 or bf16) and device of the model. Memory is not touched until it is written.
PagedCache make_paged_cache(const PagedShape& shape, const at::TensorOptions& model,
                            CacheElement element = CacheElement::Model);

// Bytes of keys and values of one block of one layer.
int64_t paged_block_bytes(const PagedShape& shape, const at::TensorOptions& model,
                          CacheElement element = CacheElement::Model);

}  // namespace convoy::kernels
