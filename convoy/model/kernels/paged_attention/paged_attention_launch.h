// SPDX-License-Identifier: Apache-2.0
//
// Parameters that the host gives to the kernels of paged_attention_cuda.cu. Pointers are addresses
// on the GPU. A cache is [blocks, block_tokens, kv_heads, head_dim], its scales are [blocks,
// block_tokens, kv_heads].
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

// The keys that a block of threads takes at once are a step. The steps of all rows, of each row
// head by head, are divided into equal shares, so that no multiprocessor waits for another that has
// a long row. The keys of a row's head may be divided among several shares: each share has one part
// of them.
inline constexpr uint32_t kKeyStep = 128;

// Elements that a thread holds of each head.
inline constexpr uint32_t kThreadElements = 8;
inline constexpr uint32_t kLargestHeadDim = 256;

// One new token of a row, which sees `keys` tokens at most (itself among them).
struct DecodeRow {
  int32_t token;      // in q and in the result
  int32_t table_row;  // in the block table
  int32_t keys;
};

// The shares that have parts of a task. A task has query heads of one kv head of a row.
struct HeadParts {
  uint32_t first_share;
  uint32_t count;
};

struct PagedPool {
  void* keys = nullptr;
  void* values = nullptr;
  float* key_scales = nullptr;  // int8 only, here and below
  float* value_scales = nullptr;
  uint32_t block_tokens = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  // Padding. A launch is counted by the pointers found in these bytes, so no byte may be unset.
  uint32_t unused = 0;
};

struct PagedDecodeLaunch {
  PagedPool pool;
  const void* q = nullptr;
  void* out = nullptr;  // [tokens, heads, head_dim]
  // Parts of divided tasks, two of each share at most: sums [shares, 2, task_heads, head_dim], not
  // yet divided by the divisor, then the largest score (base 2) and the divisor of each. The first
  // part continues a task of an earlier share. The second part begins a task, which a later share
  // continues.
  float* partial_sums = nullptr;
  float* partial_tops = nullptr;
  float* partial_divisors = nullptr;
  HeadParts* parts = nullptr;  // [rows, tasks of a row]
  const int32_t* block_table = nullptr;
  const DecodeRow* rows = nullptr;
  int64_t q_token_stride = 0;
  int64_t q_head_stride = 0;
  uint32_t num_rows = 0;
  uint32_t table_width = 0;
  uint32_t heads = 0;
  uint32_t task_heads = 0;  // query heads of one kv head that a block of threads takes at most
  uint32_t shares = 0;
  uint32_t window = 0;         // 0: none
  float scale_for_base_2 = 0;  // scale * log2(e)
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
constexpr uint32_t first_step(uint32_t keys, uint32_t window) {
  return first_visible_key(keys, window) / kKeyStep;
}
constexpr uint32_t num_steps(uint32_t keys, uint32_t window) {
  return (keys + kKeyStep - 1) / kKeyStep - first_step(keys, window);
}
// The tasks of a row, kv head after kv head. A task has a chunk of the query heads of one kv head.
struct RowTasks {
  uint32_t group, task_heads, chunks, count;

  constexpr RowTasks(uint32_t heads, uint32_t kv_heads, uint32_t most_heads)
      : group(heads / kv_heads),
        task_heads(most_heads),
        chunks((group + most_heads - 1) / most_heads),
        count(chunks * kv_heads) {}
  constexpr uint32_t kv_head(uint32_t task) const { return task / chunks; }
  constexpr uint32_t first_head(uint32_t task) const {
    return kv_head(task) * group + task % chunks * task_heads;
  }
  constexpr uint32_t num_heads(uint32_t task) const {
    const uint32_t left = group - task % chunks * task_heads;
    return left < task_heads ? left : task_heads;
  }
  constexpr uint32_t of_head(uint32_t head) const {
    return head / group * chunks + head % group / task_heads;
  }
};

}  // namespace convoy::kernels::gpu
