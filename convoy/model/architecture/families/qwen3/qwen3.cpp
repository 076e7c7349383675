// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/qwen3/qwen3.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

architecture::DecoderSpec read_qwen3_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "qwen3";
  read_sizes(config, {.head_dim = 128, .max_positions = 32768}, spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.query_key_norm = true;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rope(config, spec);
  read_qwen_windows(config, spec);
  return spec;
}

}  // namespace convoy::families
