// SPDX-License-Identifier: Apache-2.0
//
// The CPU's layout of a paged cache: each block of a head is packed for the GEMM loops, so that one
// new token and hundreds run the same loops over it, and nothing is copied. Keys are panels of 32
// tokens (B of q k^T, whose k are features), values are panels of 32 features (B of the sums, whose
// k are tokens). Elements of successive k of a column lie together: two of bf16, as in
// panel_gemm.inl, four of int8, as in quantized_loops.inl. Scales of int8 are [B, K, S].
#pragma once

#include "convoy/model/kernels/paged_attention/paged_cache.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

static_assert(kBlockTokensStep == kPanelColumns);

template <class Stored>
class PagedLayout {
 public:
  explicit PagedLayout(const PagedShape& shape)
      : shape_(shape),
        key_panel_(round_up(shape.head_dim, kTogether) * kPanelColumns),
        value_panel_(shape.block_tokens * kPanelColumns) {}

  // Number of successive k whose elements lie together.
  static constexpr int64_t kTogether = 4 / static_cast<int64_t>(sizeof(Stored));

  // Elements of one head of a block.
  int64_t key_elements() const { return shape_.block_tokens / kPanelColumns * key_panel_; }
  int64_t value_elements() const {
    return round_up(shape_.head_dim, kPanelColumns) / kPanelColumns * value_panel_;
  }
  // Elements from one panel to the next.
  int64_t key_panel_stride() const { return key_panel_; }
  int64_t value_panel_stride() const { return value_panel_; }

  int64_t keys_of(int64_t block, int64_t kv_head) const {
    return head(block, kv_head) * key_elements();
  }
  int64_t values_of(int64_t block, int64_t kv_head) const {
    return head(block, kv_head) * value_elements();
  }
  int64_t scales_of(int64_t block, int64_t kv_head) const {
    return head(block, kv_head) * shape_.block_tokens;
  }

  // The index within a head of a block: feature `feature` of token `place`.
  int64_t key_at(int64_t place, int64_t feature) const {
    return place / kPanelColumns * key_panel_ + in_panel(feature, place % kPanelColumns);
  }
  int64_t value_at(int64_t place, int64_t feature) const {
    return feature / kPanelColumns * value_panel_ + in_panel(place, feature % kPanelColumns);
  }
  // The index within a panel.
  static int64_t in_panel(int64_t k, int64_t column) {
    return k / kTogether * kTogether * kPanelColumns + column * kTogether + k % kTogether;
  }

 private:
  int64_t head(int64_t block, int64_t kv_head) const {
    return block * shape_.num_kv_heads + kv_head;
  }

  PagedShape shape_;
  int64_t key_panel_;
  int64_t value_panel_;
};

}  // namespace convoy::kernels
