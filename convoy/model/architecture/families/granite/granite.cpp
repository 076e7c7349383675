// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/granite/granite.h"

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

constexpr double kLeastScale = 1e-6;
constexpr double kMostScale = 1e6;

}  // namespace

// Llama with four scales of its own; attention_multiplier stands in place of 1 / sqrt(head_dim).
architecture::DecoderSpec read_granite_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  const auto scale = [&](const char* key) {
    return config.double_or(key, 1.0, kLeastScale, kMostScale);
  };
  architecture::DecoderSpec spec;
  spec.family = "granite";
  read_sizes(config, {.vocab_size = 32000, .num_heads = 32, .max_positions = 2048}, spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.ffn_bias = config.bool_or("mlp_bias", false);
  spec.embedding_scale = scale("embedding_multiplier");
  spec.residual_scale = scale("residual_multiplier");
  spec.attention_scale = scale("attention_multiplier");
  spec.logit_scale = 1.0 / scale("logits_scaling");
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rope(config, spec);
  return spec;
}

}  // namespace convoy::families
