// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/olmo2/olmo2.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

architecture::DecoderSpec read_olmo_layers(const io::JsonReader& config,
                                           const std::string& family) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = family;
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
  return spec;
}

architecture::DecoderSpec read_olmo2_spec(const io::JsonReader& config) {
  architecture::DecoderSpec spec = read_olmo_layers(config, "olmo2");
  read_rope(config, spec);
  return spec;
}

}  // namespace convoy::families
