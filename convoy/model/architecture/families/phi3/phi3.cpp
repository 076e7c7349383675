// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/phi3/phi3.h"

#include <cmath>
#include <utility>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

// config.json has the original length outside the rule, where it takes precedence over the length
// in the rule.
io::JsonReader with_original_positions(const io::JsonReader& config) {
  constexpr const char* kOriginal = "original_max_position_embeddings";
  constexpr int64_t kUsual = 4096;
  const int64_t original = config.int_or(kOriginal, kUsual, 2, kMostPositions);
  io::Json changed = config.value();
  for (const char* const key : {"rope_scaling", "rope_parameters"})
    if (changed.contains(key) && changed[key].is_object()) changed[key][kOriginal] = original;
  return {std::move(changed), config.place()};
}

}  // namespace

architecture::DecoderSpec read_phi3_spec(const io::JsonReader& config) {
  refuse_unsupported_but(config, {kPartialRotation});
  architecture::DecoderSpec spec;
  spec.family = "phi3";
  read_sizes(config,
             {.vocab_size = 32064, .num_heads = 32, .max_positions = 4096, .norm_epsilon = 1e-5},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.fused_qkv = true;
  spec.fused_gate_up = true;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_partial_rope(with_original_positions(config), {}, spec);
  const int64_t window = config.optional_int("sliding_window", 1, kMostPositions).value_or(0);
  for (architecture::LayerSpec& layer : spec.layers) layer.sliding_window = window;
  return spec;
}

}  // namespace convoy::families
