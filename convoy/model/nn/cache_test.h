// SPDX-License-Identifier: Apache-2.0
//
// A cache for tests, whose rows get new blocks as they grow, in another order than their tokens.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/kv_cache.h"

namespace convoy::testing {

class GrowingCache {
 public:
  static constexpr int64_t kBlockTokens = kernels::kBlockTokensStep;

  GrowingCache(const nn::CausalLm& model, int64_t num_rows, int64_t num_blocks = 16)
      : device_(model.device()),
        cache_(model.kv_geometry(), kBlockTokens,
               std::vector<int64_t>(nn::layer_groups(model.kv_geometry()).size(), num_blocks),
               kernels::CacheElement::Model, num_rows),
        rows_(static_cast<size_t>(num_rows)),
        next_block_(static_cast<int32_t>(num_blocks) - 1) {}

  int64_t length(int64_t row) const { return rows_[static_cast<size_t>(row)].num_keys; }
  const nn::KvCache* cache() const { return &cache_; }

  // Plans the next pass. `tokens_of_rows` holds pairs of a row and the number of its new tokens.
  void grow(const std::vector<std::pair<int64_t, int64_t>>& tokens_of_rows) {
    std::vector<kernels::PagedRow> planned;
    std::vector<nn::StateSlot> states;
    for (const auto& [row, tokens] : tokens_of_rows) {
      kernels::PagedRow& grown = rows_[static_cast<size_t>(row)];
      states.push_back({.slot = row, .begins = grown.num_keys == 0});
      grown.num_queries = tokens;
      grown.num_keys += tokens;
      while (static_cast<int64_t>(grown.blocks.size()) * kBlockTokens < grown.num_keys)
        grown.blocks.push_back(next_block_--);
      planned.push_back(grown);
    }
    std::vector<kernels::PagedRows> by_group;
    for (int64_t group = 0; group < cache_.num_groups(); ++group)
      by_group.emplace_back(planned, kBlockTokens, device_);
    cache_.set_rows(std::move(by_group), states);
  }

 private:
  at::Device device_;
  nn::KvCache cache_;
  std::vector<kernels::PagedRow> rows_;
  int32_t next_block_;
};

}  // namespace convoy::testing
