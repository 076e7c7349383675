// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/seed_oss/seed_oss.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

// A key of its own decides whether the output map of attention has a bias.
architecture::DecoderSpec read_seed_oss_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "seed_oss";
  read_sizes(config,
             {.vocab_size = 155136,
              .num_heads = 80,
              .num_kv_heads = 8,
              .head_dim = 128,
              .max_positions = 524288},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = config.bool_or("attention_bias", true);
  spec.attention_output_bias = config.bool_or("attention_out_bias", false);
  spec.ffn_bias = config.bool_or("mlp_bias", false);
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rope(config, spec);
  return spec;
}

}  // namespace convoy::families
