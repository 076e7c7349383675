// SPDX-License-Identifier: Apache-2.0
//
// The rows of a step of generation: how many new tokens each row has, and which blocks of a paged
// cache hold the row's tokens. Made once per step on the host, for all layers that share a block
// table.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/model/kernels/row_index/row_index.h"

namespace convoy::kernels {

// The entry of a table for a block that no query sees any more.
inline constexpr int32_t kNoBlock = -1;

struct PagedRow {
  int64_t num_queries = 0;      // new tokens: the last of its keys
  int64_t num_keys = 0;         // all tokens so far, the new ones among them
  std::vector<int32_t> blocks;  // token i lies in blocks[i / block_tokens]; further ones may follow
};

// Rows of a step with several new tokens: pieces of prompts. Tensors are on the device.
struct PrefillRows {
  std::vector<int64_t> rows;       // numbers of the rows in the step
  std::vector<int64_t> starts{0};  // by row: first new token in tokens_P; last: number of tokens
  std::vector<int64_t> blocks;     // by row: number of blocks in blocks_N
  std::vector<int64_t> keys;       // by row: number of gathered tokens that are keys
  int64_t first_token = 0;         // number of the first new token in the step
  bool is_contiguous = true;       // the rows' new tokens follow each other in the step
  int64_t longest_queries = 0;
  int64_t longest_keys = 0;
  at::Tensor tokens_P;      // int64: numbers of the new tokens in the step
  at::Tensor blocks_N;      // int32: blocks held up to the last key, row by row
  at::Tensor query_starts;  // int32 [rows + 1], here and below: cumulative lengths
  at::Tensor key_starts;    // the same for the gathered tokens, which fill whole blocks
  at::Tensor used_keys;     // int32 [rows]

  bool empty() const { return rows.empty(); }
};

class PagedRows {
 public:
  PagedRows() : PagedRows({}, 1) {}
  // Throws StateError where a row's new tokens have no block. Async: nothing waits for the device.
  PagedRows(std::vector<PagedRow> rows, int64_t block_tokens, at::Device device = at::kCPU);
  // Adds its tensors to `upload`, which the caller sends. Tables and launches are sized for rows of
  // `planned_keys` keys if no row has more. So they stay the same for steps of as many rows with
  // one new token each, until a row has more keys.
  PagedRows(std::vector<PagedRow> rows, int64_t block_tokens, device::Upload& upload,
            int64_t planned_keys = 0);

  int64_t num_rows() const { return static_cast<int64_t>(rows_.size()); }
  const PagedRow& row(int64_t index) const { return rows_[index]; }
  const std::vector<PagedRow>& rows() const { return rows_; }
  int64_t block_tokens() const { return block_tokens_; }
  // All blocks have lower numbers.
  int64_t end_block() const { return end_block_; }
  // The widest window for which each row holds the blocks of all keys that its first new token
  // sees; INT64_MAX: any window.
  int64_t widest_window() const { return widest_window_; }
  // The positions of each row's new tokens in a packed batch.
  const RowIndex& queries() const { return queries_; }
  // By new token, int64 [T] on the device: block * block_tokens + place in the block.
  const at::Tensor& slots_T() const { return slots_T_; }
  // int32 [R, most blocks] on the device; kNoBlock where a row has none.
  const at::Tensor& block_table_RN() const { return block_table_RN_; }
  // Rows of one new token, int32 [D, 3] on the device: token in the step, row, keys.
  const at::Tensor& decode_rows_D3() const { return decode_rows_D3_; }
  // Upper bounds for rows of one new token: the keys of one row, and the keys of all these rows.
  int64_t longest_decode_keys() const { return longest_decode_keys_; }
  int64_t decode_keys(int64_t window) const;
  const PrefillRows& prefill() const { return prefill_; }

 private:
  std::vector<PagedRow> rows_;
  int64_t block_tokens_ = 0;
  int64_t end_block_ = 0;
  int64_t widest_window_ = INT64_MAX;
  RowIndex queries_;
  at::Tensor slots_T_;
  at::Tensor block_table_RN_;
  at::Tensor decode_rows_D3_;
  int64_t longest_decode_keys_ = 0;
  int64_t planned_keys_ = 0;
  PrefillRows prefill_;
};

}  // namespace convoy::kernels
