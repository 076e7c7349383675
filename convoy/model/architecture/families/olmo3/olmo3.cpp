// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/olmo3/olmo3.h"

#include <cmath>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

// Without layer_types, every fourth layer sees all keys.
std::vector<bool> read_olmo3_windows(const io::JsonReader& config, int64_t num_layers) {
  constexpr int64_t kInterval = 4;
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  if (!sliding.empty()) return sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back((i + 1) % kInterval != 0);
  return sliding;
}

}  // namespace

// OLMo 2 with windows. Only layers without a window scale their rotation.
architecture::DecoderSpec read_olmo3_spec(const io::JsonReader& config) {
  constexpr double kDefaultTheta = 5e5;
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "olmo3";
  read_sizes(config,
             {.vocab_size = 50304, .num_heads = 32, .max_positions = 2048, .norm_epsilon = 1e-5},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.query_key_norm = true;
  spec.norm_over_heads = true;
  spec.norms = architecture::kNormsAfter;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  const double theta = config.double_or("rope_theta", kDefaultTheta, kLeastTheta, kMostTheta);
  spec.ropes =
      read_ropes_by_type(config, {.full_theta = theta, .sliding_theta = theta}, spec.max_positions);

  const int64_t window = config.int_or("sliding_window", 4096, 1, kMostPositions);
  const std::vector<bool> sliding = read_olmo3_windows(config, spec.num_layers());
  for (int64_t i = 0; i < spec.num_layers(); ++i) {
    if (sliding[i] && config.find("sliding_window") != nullptr && !config.has("sliding_window"))
      config.fail("sliding_window", "is null, but layers of this model have one");
    spec.layers[i] = {.rope = sliding[i] ? kSlidingRope : kFullRope,
                      .sliding_window = sliding[i] ? window : 0};
  }
  return spec;
}

}  // namespace convoy::families
