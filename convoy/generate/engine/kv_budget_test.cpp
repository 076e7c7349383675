// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/kv_budget.h"

#include <gtest/gtest.h>

namespace convoy::generate {
namespace {

// One layer that sees all keys, and one layer with a state: 48 values of the convolution and 256
// values of the delta rule.
nn::KvGeometry hybrid() {
  return {.num_kv_heads = 1,
          .head_dim = 4,
          .windows = {0, nn::kHasState},
          .delta_net = {.num_key_heads = 1,
                        .num_value_heads = 1,
                        .key_head_dim = 8,
                        .value_head_dim = 32,
                        .conv_width = 2},
          .options = at::kFloat};
}

TEST(KvBudget, KeepsAsManyStatesOfPrefixesAsRows) {
  const nn::KvGeometry geometry = hybrid();
  EXPECT_EQ(num_prefix_states(geometry, {.max_rows = 5}), 5);
  EXPECT_EQ(num_prefix_states(geometry, {.max_rows = 5, .shares_prefixes = false}), 0);
  nn::KvGeometry attention = geometry;
  attention.windows = {0, 0};
  EXPECT_EQ(num_prefix_states(attention, {.max_rows = 5}), 0);
  const int64_t bytes = nn::state_bytes(geometry);
  EXPECT_EQ(num_prefix_states(geometry, {.max_rows = 5, .memory_bytes = 13 * bytes}), 3)
      << "a quarter of a limited memory";
  EXPECT_EQ(num_prefix_states(geometry, {.max_rows = 5, .memory_bytes = 3 * bytes}), 0);
}

TEST(KvBudget, TakesTheirBytesOffALimitedMemory) {
  const nn::KvGeometry geometry = hybrid();
  const int64_t block =
      nn::kv_block_bytes(geometry, nn::layer_groups(geometry)[0], 32, kernels::CacheElement::Model);
  KvBudget budget{.block_tokens = 32,
                  .max_rows = 4,
                  .longest_row_tokens = 32 * 100,
                  .memory_bytes = 8 * nn::state_bytes(geometry) + 20 * block};
  ASSERT_EQ(num_prefix_states(geometry, budget), 4);
  EXPECT_EQ(kv_blocks(geometry, budget).at(0).num_blocks, 20);
  budget.shares_prefixes = false;
  EXPECT_GT(kv_blocks(geometry, budget).at(0).num_blocks, 20);
}

}  // namespace
}  // namespace convoy::generate
