// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/kv_cache.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::nn {
namespace {

kernels::PagedShape paged_shape(const KvHeads& heads, int64_t block_tokens, int64_t num_blocks) {
  return {.num_blocks = num_blocks,
          .block_tokens = block_tokens,
          .num_kv_heads = heads.num_kv_heads,
          .head_dim = heads.head_dim};
}

std::vector<bool> layers_with_state(const KvGeometry& geometry) {
  std::vector<bool> has_state;
  for (const int64_t window : geometry.windows) has_state.push_back(window == kHasState);
  return has_state;
}

}  // namespace

bool KvGeometry::has_states() const {
  return std::find(windows.begin(), windows.end(), kHasState) != windows.end();
}

KvHeads KvGeometry::heads_of(int64_t layer) const {
  if (heads.empty()) return {num_kv_heads, head_dim};
  return heads.at(static_cast<size_t>(layer));
}

bool KvGeometry::stores_keys(int64_t layer) const {
  const auto at = static_cast<size_t>(layer);
  return windows.at(at) != kHasState && (keys_of.empty() || keys_of.at(at) == layer);
}

std::vector<KvLayerGroup> layer_groups(const KvGeometry& geometry) {
  std::vector<KvLayerGroup> groups;
  for (int64_t layer = 0; layer < std::ssize(geometry.windows); ++layer) {
    if (!geometry.stores_keys(layer)) continue;
    const int64_t window = geometry.windows[static_cast<size_t>(layer)];
    const KvHeads heads = geometry.heads_of(layer);
    auto found = std::find_if(groups.begin(), groups.end(), [&](const KvLayerGroup& group) {
      return group.window_tokens == window && group.heads == heads;
    });
    if (found == groups.end())
      found = groups.insert(found, {.window_tokens = window, .layers = {}, .heads = heads});
    found->layers.push_back(layer);
  }
  return groups;
}

int64_t kv_block_bytes(const KvGeometry& geometry, const KvLayerGroup& group, int64_t block_tokens,
                       kernels::CacheElement element) {
  return static_cast<int64_t>(group.layers.size()) *
         kernels::paged_block_bytes(paged_shape(group.heads, block_tokens, 1), geometry.options,
                                    element);
}

int64_t state_bytes(const KvGeometry& geometry) {
  const std::vector<bool> has_state = layers_with_state(geometry);
  return recurrent_state_bytes(
      geometry.delta_net, std::count(has_state.begin(), has_state.end(), true), geometry.options);
}

KvCache::KvCache(const KvGeometry& geometry, int64_t block_tokens,
                 const std::vector<int64_t>& num_blocks, kernels::CacheElement element,
                 int64_t num_states)
    : block_tokens_(block_tokens), layers_(geometry.windows.size()) {
  const std::vector<KvLayerGroup> groups = layer_groups(geometry);
  num_groups_ = static_cast<int64_t>(groups.size());
  CONVOY_INVARIANT(num_blocks.size() == groups.size(), "{} sizes for {} groups of layers",
                   num_blocks.size(), groups.size());
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const int64_t layer : groups[group].layers)
      layers_[layer] = {static_cast<int64_t>(group),
                        kernels::make_paged_cache(
                            paged_shape(groups[group].heads, block_tokens, num_blocks[group]),
                            geometry.options, element)};
  }
  for (size_t layer = 0; layer < geometry.keys_of.size(); ++layer)
    layers_[layer] = layers_.at(static_cast<size_t>(geometry.keys_of[layer]));
  if (geometry.has_states())
    states_ = RecurrentStates(geometry.delta_net, layers_with_state(geometry), num_states,
                              geometry.options);
}

void KvCache::set_rows(std::vector<kernels::PagedRows> rows_by_group,
                       const std::vector<StateSlot>& states) {
  CONVOY_INVARIANT(static_cast<int64_t>(rows_by_group.size()) == num_groups_,
                   "rows of {} groups for a cache of {}", rows_by_group.size(), num_groups_);
  rows_ = std::move(rows_by_group);
  if (!states_.empty()) states_.set_rows(states);
}

at::Tensor KvCache::attend(int64_t layer, const at::Tensor& q_THE, const at::Tensor& k_TKE,
                           const at::Tensor& v_TKE, const kernels::HeadTransform& transform,
                           const kernels::AttentionConfig& config) const {
  const Layer& of_layer = layers_.at(static_cast<size_t>(layer));
  const kernels::PagedRows& rows = rows_.at(static_cast<size_t>(of_layer.group));
  const at::Tensor queries_THE =
      kernels::transform_and_store(q_THE, k_TKE, v_TKE, transform, of_layer.stored, rows);
  return kernels::paged_attention(queries_THE, of_layer.stored, rows, config);
}

at::Tensor KvCache::attend_to_stored(int64_t layer, const at::Tensor& q_THE,
                                     const kernels::AttentionConfig& config) const {
  const Layer& of_layer = layers_.at(static_cast<size_t>(layer));
  return kernels::paged_attention(q_THE, of_layer.stored,
                                  rows_.at(static_cast<size_t>(of_layer.group)), config);
}

}  // namespace convoy::nn
