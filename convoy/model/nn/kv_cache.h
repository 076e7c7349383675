// SPDX-License-Identifier: Apache-2.0
//
// Keys and values of rows being generated, in blocks that rows use in any order and may share. The
// scheduler decides which row holds a block (generate/scheduler/scheduler.h); this class holds
// their memory. One thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <vector>

#include "convoy/model/kernels/paged_attention/paged_attention.h"
#include "convoy/model/nn/recurrent_states.h"

namespace convoy::nn {

// In place of a window: the layer stores no keys and values, it has a state of each row.
inline constexpr int64_t kHasState = -1;

// A layer's heads of keys and values.
struct KvHeads {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  bool operator==(const KvHeads&) const = default;
};

// The values that a model stores of each token, and of each row.
struct KvGeometry {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  // By layer: the number of keys that a query sees, its own key included; 0 = all; or kHasState.
  std::vector<int64_t> windows;
  architecture::DeltaNetSpec delta_net = {};  // sizes of the layers that have a state
  at::TensorOptions options;                  // element type and device
  // By layer, where layers differ; empty: all layers have the heads above.
  std::vector<KvHeads> heads = {};
  // By layer: the layer that stores the keys and values it reads. Empty: each layer stores its own.
  std::vector<int64_t> keys_of = {};

  bool has_states() const;
  KvHeads heads_of(int64_t layer) const;
  // Does the layer store keys and values of its own?
  bool stores_keys(int64_t layer) const;
};

// Layers that store keys of the same tokens in blocks of the same shape: a row has one table of
// blocks for all of them.
struct KvLayerGroup {
  int64_t window_tokens = 0;
  std::vector<int64_t> layers;
  KvHeads heads = {};
};
// Groups layers by window and heads, in the order of their first layers, without the layers that
// store no keys.
std::vector<KvLayerGroup> layer_groups(const KvGeometry& geometry);

// Bytes of one block in all layers of a group.
int64_t kv_block_bytes(const KvGeometry& geometry, const KvLayerGroup& group, int64_t block_tokens,
                       kernels::CacheElement element);

// Bytes of the state of one row in all layers that have one.
int64_t state_bytes(const KvGeometry& geometry);

class KvCache {
 public:
  // `num_blocks`: by layer group. Memory is taken as blocks are written. `num_states`: slots for
  // states of rows and of prefixes.
  KvCache(const KvGeometry& geometry, int64_t block_tokens, const std::vector<int64_t>& num_blocks,
          kernels::CacheElement element = kernels::CacheElement::Model, int64_t num_states = 0);

  int64_t block_tokens() const { return block_tokens_; }
  int64_t num_groups() const { return num_groups_; }

  // The rows of the next pass, by group: the same rows with other blocks. `states` has the slots of
  // the same rows, for a model that has_states().
  void set_rows(std::vector<kernels::PagedRows> rows_by_group,
                const std::vector<StateSlot>& states = {});
  const std::vector<kernels::PagedRows>& rows() const { return rows_; }
  const RecurrentStates& states() const { return states_; }
  void keep_states() { states_.keep_states(); }  // after the pass

  // Transforms q [T, H, E] and k [T, K, E] of the pass, stores k and v [T, K, E], then attends to
  // all keys that the rows have stored: [T, H, E].
  at::Tensor attend(int64_t layer, const at::Tensor& q_THE, const at::Tensor& k_TKE,
                    const at::Tensor& v_TKE, const kernels::HeadTransform& transform,
                    const kernels::AttentionConfig& config) const;
  // The same for a layer that reads the keys of another layer, with queries that are transformed
  // already. The other layer has attended in this pass.
  at::Tensor attend_to_stored(int64_t layer, const at::Tensor& q_THE,
                              const kernels::AttentionConfig& config) const;

 private:
  struct Layer {
    int64_t group = 0;
    kernels::PagedCache stored;
  };
  int64_t block_tokens_;
  int64_t num_groups_;
  std::vector<Layer> layers_;
  std::vector<kernels::PagedRows> rows_;
  RecurrentStates states_;
};

}  // namespace convoy::nn
