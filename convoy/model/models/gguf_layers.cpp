// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/gguf_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "convoy/core/io/gguf/gemma4_config.h"
#include "convoy/core/io/gguf/rope_divisors.h"

namespace convoy::models {
namespace {

using architecture::DecoderSpec;
using architecture::LayerSpec;
using architecture::RopeKind;
using architecture::RopeSpec;

bool has_window(const LayerSpec& layer) { return layer.sliding_window > 0; }

void add_list_of_windows(const std::string& prefix, const DecoderSpec& spec,
                         gguf::Metadata& metadata) {
  std::vector<bool> sliding;
  for (const LayerSpec& layer : spec.layers) sliding.push_back(has_window(layer));
  const auto first = std::find_if(spec.layers.begin(), spec.layers.end(), has_window);
  metadata.number(prefix + "attention.sliding_window", first->sliding_window);
  metadata.truths(prefix + "attention.sliding_window_pattern", sliding);
}

// The first layer of this kind; the first of all where there is none.
const LayerSpec& layer_of_kind(const DecoderSpec& spec, bool slides) {
  const auto found =
      std::find_if(spec.layers.begin(), spec.layers.end(),
                   [&](const LayerSpec& layer) { return has_window(layer) == slides; });
  return found == spec.layers.end() ? spec.layers.front() : *found;
}

int64_t first_shared_layer(const DecoderSpec& spec) {
  const auto found =
      std::find_if(spec.layers.begin(), spec.layers.end(),
                   [](const LayerSpec& layer) { return layer.keys_of != architecture::kOwnKeys; });
  return found - spec.layers.begin();
}

// One number where all layers have it, else a list.
void add_by_layer(const std::string& key, const std::vector<int64_t>& numbers,
                  gguf::Metadata& metadata) {
  if (std::set(numbers.begin(), numbers.end()).size() == 1)
    metadata.number(key, numbers.front());
  else
    metadata.numbers(key, numbers);
}

}  // namespace

std::string gemma4_refusal(const DecoderSpec& spec) {
  const RopeSpec& full = spec.ropes.front();
  if (full.kind != RopeKind::Proportional || full.factor != 1.0)
    return "llama.cpp rotates layers of this architecture that see all keys by the proportional "
           "rule without a factor";
  if (spec.ropes[1].kind != RopeKind::Default || spec.ropes[1].rotated_features != 0)
    return "llama.cpp does not scale the rotation of sliding layers";
  if (std::none_of(spec.layers.begin(), spec.layers.end(), has_window))
    return "llama.cpp needs layers with a window in this architecture";
  if (spec.layer_inputs.are_there() && spec.layer_inputs.vocab_size != spec.vocab_size)
    return "llama.cpp has as many embeddings for each layer as tokens";
  // Layers that share read the last layers of each kind that do not.
  const int64_t first_shared = first_shared_layer(spec);
  for (int64_t index = first_shared; index < spec.num_layers(); ++index) {
    const LayerSpec& layer = spec.layers[static_cast<size_t>(index)];
    if (layer.keys_of != first_shared - (has_window(layer) ? 2 : 1))
      return "llama.cpp lets layers read the keys and values of the last two that have their own, "
             "one with a window and then one without";
  }
  return "";
}

std::string glimmer_refusal(const DecoderSpec& spec) {
  constexpr double kAfterEpsilon = 1e-8;
  if (spec.after_norm_epsilon != kAfterEpsilon)
    return "llama.cpp has a post_norm_eps of 1e-8 in this architecture";
  if (spec.ropes.front().kind != RopeKind::Default)
    return "llama.cpp does not scale the rotation of sliding layers";
  if (std::none_of(spec.layers.begin(), spec.layers.end(), has_window))
    return "llama.cpp needs layers with a window in this architecture";
  for (const LayerSpec& layer : spec.layers)
    if (has_window(layer) != (layer.rope != architecture::kNoRope))
      return "llama.cpp rotates the layers with a window, and this model others";
  return "";
}

void add_gemma4_layers(const std::string& prefix, const DecoderSpec& spec,
                       gguf::Metadata& metadata) {
  std::vector<int64_t> ffn, kv_heads;
  for (const LayerSpec& layer : spec.layers) {
    ffn.push_back(spec.ffn_size_of(layer));
    kv_heads.push_back(spec.kv_heads_of(layer));
  }
  add_by_layer(prefix + "feed_forward_length", ffn, metadata);
  add_by_layer(prefix + "attention.head_count_kv", kv_heads, metadata);
  const int64_t full = spec.head_dim_of(layer_of_kind(spec, /*slides=*/false));
  const int64_t sliding = spec.head_dim_of(layer_of_kind(spec, /*slides=*/true));
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
    metadata.number(prefix + key, full);
  for (const char* key :
       {gguf::kSlidingKeyLength, gguf::kSlidingValueLength, gguf::kSlidingRotated})
    metadata.number(prefix + key, sliding);
  metadata.real(prefix + "rope.freq_base_swa", spec.ropes[1].theta);
  metadata.number(prefix + gguf::kSharedKvLayers, spec.num_layers() - first_shared_layer(spec));
  metadata.number(prefix + gguf::kLayerInputWidth, spec.layer_inputs.width);
  if (spec.logit_cap > 0) metadata.real(prefix + "final_logit_softcapping", spec.logit_cap);
  add_list_of_windows(prefix, spec, metadata);
}

void add_glimmer_layers(const std::string& prefix, const DecoderSpec& spec,
                        gguf::Metadata& metadata) {
  metadata.real(prefix + "final_logit_softcapping", spec.logit_cap);
  metadata.real(prefix + "logit_scale", spec.logit_scale);
  add_list_of_windows(prefix, spec, metadata);
}

NumbersAsTensor gemma4_divisors(const DecoderSpec& spec) {
  const int64_t head_dim = spec.head_dim_of(layer_of_kind(spec, /*slides=*/false));
  const int64_t rotated = spec.ropes.front().rotated_features / 2;
  std::vector<float> values(static_cast<size_t>(head_dim / 2),
                            static_cast<float>(gguf::kUnrotatedDivisor));
  std::fill_n(values.begin(), rotated, 1.0f);
  return {.name = gguf::kLlama3Divisors, .values = std::move(values)};
}

std::vector<NumbersAsTensor> glimmer_norms(const DecoderSpec& spec) {
  const auto features = static_cast<size_t>(spec.head_dim);
  const double scale = spec.attention_scale * std::sqrt(static_cast<double>(spec.head_dim));
  std::vector<NumbersAsTensor> norms;
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer) {
    norms.push_back({.name = fmt::format("blk.{}.attn_q_norm.weight", layer),
                     .values = std::vector<float>(features, static_cast<float>(scale))});
    norms.push_back({.name = fmt::format("blk.{}.attn_k_norm.weight", layer),
                     .values = std::vector<float>(features, 1.0f)});
  }
  return norms;
}

}  // namespace convoy::models
