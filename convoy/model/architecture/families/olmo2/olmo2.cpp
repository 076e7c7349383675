// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/olmo2/olmo2.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

// Attention and feed-forward read the hidden states without a norm, and their outputs are
// normalised.
architecture::DecoderSpec read_olmo2_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "olmo2";
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
  read_rope(config, spec);
  return spec;
}

}  // namespace convoy::families
