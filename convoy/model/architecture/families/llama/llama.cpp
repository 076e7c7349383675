// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/llama/llama.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

architecture::DecoderSpec read_llama_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "llama";
  read_sizes(config, {.max_positions = 2048}, spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.ffn_bias = config.bool_or("mlp_bias", false);
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rope(config, spec);
  return spec;
}

}  // namespace convoy::families
