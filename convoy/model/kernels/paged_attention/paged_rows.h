// SPDX-License-Identifier: Apache-2.0
//
// The rows of a step of generation: how many new tokens each has, and which blocks of a paged cache
// hold it. Made once per step on the host, for all layers that share a block table.
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

class PagedRows {
 public:
  PagedRows() : PagedRows({}, 1) {}
  // Throws StateError where a row's new tokens have no block. Async: nothing waits for the device.
  PagedRows(std::vector<PagedRow> rows, int64_t block_tokens, at::Device device = at::kCPU);

  int64_t num_rows() const { return static_cast<int64_t>(rows_.size()); }
  const PagedRow& row(int64_t index) const { return rows_[index]; }
  const std::vector<PagedRow>& rows() const { return rows_; }
  int64_t block_tokens() const { return block_tokens_; }
  // All blocks have lower numbers.
  int64_t end_block() const { return end_block_; }
  // The widest window with blocks for all its keys, at every row's first new token; INT64_MAX: any.
  int64_t widest_window() const { return widest_window_; }
  // The positions of each row's new tokens in a packed batch.
  const RowIndex& queries() const { return queries_; }
  // By new token, int64 [T] on the device: block * block_tokens + place in the block.
  const at::Tensor& slots_T() const { return slots_T_; }
  // int32 [R, most blocks] on the device; kNoBlock where a row has none.
  const at::Tensor& block_table_RN() const { return block_table_RN_; }

 private:
  std::vector<PagedRow> rows_;
  int64_t block_tokens_;
  int64_t end_block_ = 0;
  int64_t widest_window_ = INT64_MAX;
  RowIndex queries_;
  at::Tensor slots_T_;
  at::Tensor block_table_RN_;
};

}  // namespace convoy::kernels
