// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/smollm3/smollm3.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

// no_rope_layers holds 1 for a layer that rotates, 0 for one that does not; without it every
// no_rope_layer_interval-th layer does not. The first entries of a longer list are used.
void read_unrotated_layers(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  const int64_t interval = config.int_or("no_rope_layer_interval", 4, 1, kMostPositions);
  const std::vector<int64_t> rotates = config.ints_or_empty("no_rope_layers", 0, 1);
  const int64_t num_layers = spec.num_layers();
  if (config.has("no_rope_layers") && static_cast<int64_t>(rotates.size()) < num_layers) {
    config.fail("no_rope_layers", fmt::format("names {} layers, num_hidden_layers is {}",
                                              rotates.size(), num_layers));
  }
  for (int64_t i = 0; i < num_layers; ++i) {
    const bool turns = rotates.empty() ? (i + 1) % interval != 0 : rotates[i] == 1;
    spec.layers[i].rope = turns ? 0 : architecture::kNoRope;
  }
}

}  // namespace

architecture::DecoderSpec read_smollm3_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  constexpr double kDefaultTheta = 2e6;
  architecture::DecoderSpec spec;
  spec.family = "smollm3";
  read_sizes(config,
             {.vocab_size = 128256, .num_heads = 16, .num_kv_heads = 4, .max_positions = 32768},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.ffn_bias = config.bool_or("mlp_bias", false);
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", true);
  read_rope(config, spec, kDefaultTheta);
  read_unrotated_layers(config, spec);
  read_optional_windows(config, spec, [&](int64_t layer) {
    return spec.layers[layer].rope == architecture::kNoRope;
  });
  return spec;
}

}  // namespace convoy::families
