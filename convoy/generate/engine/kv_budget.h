// SPDX-License-Identifier: Apache-2.0
//
// The number of KV blocks of an engine.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/generate/scheduler/layer_blocks.h"
#include "convoy/model/nn/kv_cache.h"

namespace convoy::generate {

struct KvBudget {
  int64_t block_tokens = kernels::kBlockTokensStep;
  int64_t max_rows = 16;
  int64_t longest_row_tokens = 0;  // prompt and answer
  int64_t step_tokens = 512;
  int64_t blocks = 0;        // blocks of layers that see all keys; 0: as many as all rows may need
  int64_t memory_bytes = 0;  // limit of all blocks and states together; 0: no limit
  kernels::CacheElement element = kernels::CacheElement::Model;
  bool shares_prefixes = true;
};

// The number of states at ends of prefixes that an engine keeps: as many as it has rows, but in at
// most a quarter of a limited memory. 0 if the model has no states or rows share no prefixes.
int64_t num_prefix_states(const nn::KvGeometry& geometry, const KvBudget& budget);

// Returns the number of blocks of each layer group of the model, at least one each. Layers with a
// window get as many blocks as their windows may need.
std::vector<scheduler::LayerGroup> kv_blocks(const nn::KvGeometry& geometry,
                                             const KvBudget& budget);

}  // namespace convoy::generate
