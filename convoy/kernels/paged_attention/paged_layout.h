// SPDX-License-Identifier: Apache-2.0
//
// The CPU's layout of a paged cache: each block of a head lies packed as the GEMM loops want it, so
// that one new token and hundreds run the same loops over it, and nothing is copied. Keys are panels
// of 32 tokens (B of q k^T), values are panels of 32 features (B of the sums over tokens); with bf16
// two features of a key, or two tokens of a value, lie together. Int8 lies in the order of the
// model's type, its scales [B, K, S].
#pragma once

#include "convoy/kernels/paged_attention/paged_cache.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

static_assert(kBlockTokensStep == kPanelColumns);

template <class Element>
class PagedLayout {
 public:
  explicit PagedLayout(const PagedShape& shape)
      : shape_(shape),
        key_panel_(panel_elements<Element>(shape.head_dim)),
        value_panel_(panel_elements<Element>(shape.block_tokens)) {}

  static constexpr int64_t kPair = sizeof(Element) == 2 ? 2 : 1;

  // Elements of one head of a block.
  int64_t key_elements() const { return shape_.block_tokens / kPanelColumns * key_panel_; }
  int64_t value_elements() const {
    return round_up(shape_.head_dim, kPanelColumns) / kPanelColumns * value_panel_;
  }
  // From one panel to the next.
  int64_t key_panel_stride() const { return key_panel_; }
  int64_t value_panel_stride() const { return value_panel_; }

  int64_t head(int64_t block, int64_t kv_head) const {
    return block * shape_.num_kv_heads + kv_head;
  }
  int64_t keys_of(int64_t block, int64_t kv_head) const {
    return head(block, kv_head) * key_elements();
  }
  int64_t values_of(int64_t block, int64_t kv_head) const {
    return head(block, kv_head) * value_elements();
  }
  int64_t scales_of(int64_t block, int64_t kv_head) const {
    return head(block, kv_head) * shape_.block_tokens;
  }

  // Within a head of a block: feature `feature` of token `place`.
  int64_t key_at(int64_t place, int64_t feature) const {
    return place / kPanelColumns * key_panel_ + feature / kPair * kPair * kPanelColumns +
           place % kPanelColumns * kPair + feature % kPair;
  }
  int64_t value_at(int64_t place, int64_t feature) const {
    return feature / kPanelColumns * value_panel_ + place / kPair * kPair * kPanelColumns +
           feature % kPanelColumns * kPair + place % kPair;
  }

 private:
  PagedShape shape_;
  int64_t key_panel_;
  int64_t value_panel_;
};

}  // namespace convoy::kernels
