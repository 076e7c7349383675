// SPDX-License-Identifier: Apache-2.0
//
// Parameters that the host gives to the kernels of paged_attention_cuda.cu. Pointers are addresses
// on the GPU. A cache is [blocks, block_tokens, kv_heads, head_dim], its scales are [blocks,
// block_tokens, kv_heads].
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

// Splits are multiples of this: a block of threads takes so many keys at once.
inline constexpr uint32_t kSplitStep = 128;

// Elements that a thread holds of each head.
inline constexpr uint32_t kThreadElements = 8;
inline constexpr uint32_t kLargestHeadDim = 256;

// One new token of a row, which sees `keys` tokens at most (itself among them).
struct DecodeRow {
  int32_t token;      // in q and in the result
  int32_t table_row;  // in the block table
  int32_t keys;
};

struct PagedPool {
  void* keys = nullptr;
  void* values = nullptr;
  float* key_scales = nullptr;  // int8 only, here and below
  float* value_scales = nullptr;
  uint32_t block_tokens = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t unused = 0;  // launches are counted by the pointers in their bytes: none is left unset
};

struct PagedDecodeLaunch {
  PagedPool pool;
  const void* q = nullptr;
  void* out = nullptr;  // [tokens, heads, head_dim]
  // Rows of several splits: sums [rows, heads, splits, head_dim] without their divisor, then the
  // largest score (base 2) and the divisor of each.
  float* partial_sums = nullptr;
  float* partial_tops = nullptr;
  float* partial_divisors = nullptr;
  const int32_t* block_table = nullptr;
  const DecodeRow* rows = nullptr;
  int64_t q_token_stride = 0;
  int64_t q_head_stride = 0;
  uint32_t num_rows = 0;
  uint32_t table_width = 0;
  uint32_t heads = 0;
  uint32_t splits = 0;         // of the row with most
  uint32_t split_keys = 0;     // keys that one block of threads takes: a multiple of kSplitStep
  uint32_t window = 0;         // 0: none
  float scale_for_base_2 = 0;  // scale * log2(e)
  uint32_t unused = 0;
};

// Without queries, norms and tables, keys are stored as they are.
struct PagedStoreLaunch {
  PagedPool pool;
  const void* queries = nullptr;
  void* transformed_queries = nullptr;  // [tokens, query_heads, head_dim]
  const void* keys = nullptr;
  const void* values = nullptr;
  const int64_t* slots = nullptr;
  const void* query_norm = nullptr;  // weights over a head
  const void* key_norm = nullptr;
  const float* cos = nullptr;  // by position: head_dim / 2
  const float* sin = nullptr;
  const int64_t* positions = nullptr;  // per token
  int64_t query_token_stride = 0;
  int64_t query_head_stride = 0;
  int64_t key_token_stride = 0;
  int64_t key_head_stride = 0;
  int64_t value_token_stride = 0;
  int64_t value_head_stride = 0;
  uint64_t tokens = 0;
  uint64_t query_heads = 0;
  float epsilon = 0;
  uint32_t scale_by_one_plus = 0;
};

// First key that a row sees.
constexpr uint32_t first_visible_key(uint32_t keys, uint32_t window) {
  return window > 0 && keys > window ? keys - window : 0;
}
constexpr uint32_t first_split(uint32_t keys, uint32_t window, uint32_t split_keys) {
  return first_visible_key(keys, window) / split_keys;
}
constexpr uint32_t num_splits(uint32_t keys, uint32_t window, uint32_t split_keys) {
  return (keys + split_keys - 1) / split_keys - first_split(keys, window, split_keys);
}

}  // namespace convoy::kernels::gpu
