// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/kv_budget.h"

#include <algorithm>

namespace convoy::generate {
namespace {

// The blocks that `budget.max_rows` rows need in each layer group, but at most `blocks` and at
// least 1.
std::vector<scheduler::LayerGroup> wanted_blocks(const std::vector<nn::KvLayerGroup>& layers,
                                                 const KvBudget& budget, int64_t blocks) {
  std::vector<scheduler::LayerGroup> groups;
  for (const nn::KvLayerGroup& each : layers) {
    const scheduler::LayerBlocks one({.window_tokens = each.window_tokens, .num_blocks = 1},
                                     budget.block_tokens);
    const int64_t of_rows =
        budget.max_rows * one.most_held(budget.longest_row_tokens, budget.step_tokens);
    groups.push_back({.window_tokens = each.window_tokens,
                      .num_blocks = std::max<int64_t>(std::min(of_rows, blocks), 1)});
  }
  return groups;
}

}  // namespace

int64_t num_prefix_states(const nn::KvGeometry& geometry, const KvBudget& budget) {
  if (!geometry.has_states() || !budget.shares_prefixes) return 0;
  if (budget.memory_bytes == 0) return budget.max_rows;
  return std::min(budget.max_rows, budget.memory_bytes / 4 / nn::state_bytes(geometry));
}

std::vector<scheduler::LayerGroup> kv_blocks(const nn::KvGeometry& geometry,
                                             const KvBudget& budget) {
  const std::vector<nn::KvLayerGroup> layers = nn::layer_groups(geometry);
  const int64_t row_blocks =
      (budget.longest_row_tokens + budget.block_tokens - 1) / budget.block_tokens;
  const int64_t blocks = budget.blocks > 0 ? budget.blocks : budget.max_rows * row_blocks;
  std::vector<scheduler::LayerGroup> groups = wanted_blocks(layers, budget, blocks);
  if (budget.blocks > 0) {
    for (scheduler::LayerGroup& group : groups)
      if (group.window_tokens == 0) group.num_blocks = budget.blocks;
    return groups;
  }
  const int64_t states = budget.max_rows + num_prefix_states(geometry, budget);
  const int64_t state_bytes = geometry.has_states() ? states * nn::state_bytes(geometry) : 0;
  const int64_t limit = std::max<int64_t>(budget.memory_bytes - state_bytes, 1);
  int64_t bytes = 0;
  for (size_t group = 0; group < groups.size(); ++group)
    bytes += groups[group].num_blocks *
             nn::kv_block_bytes(geometry, layers[group], budget.block_tokens, budget.element);
  if (budget.memory_bytes == 0 || bytes <= limit) return groups;
  const double share = static_cast<double>(limit) / static_cast<double>(bytes);
  for (scheduler::LayerGroup& group : groups)
    group.num_blocks =
        std::max<int64_t>(static_cast<int64_t>(share * static_cast<double>(group.num_blocks)), 1);
  return groups;
}

}  // namespace convoy::generate
