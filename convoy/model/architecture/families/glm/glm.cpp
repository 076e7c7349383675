// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/glm/glm.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

architecture::DecoderSpec read_glm_spec(const io::JsonReader& config) {
  refuse_unsupported_but(config, {kPartialRotation});
  architecture::DecoderSpec spec;
  spec.family = "glm";
  read_sizes(config,
             {.vocab_size = 151552,
              .num_heads = 32,
              .num_kv_heads = 2,
              .head_dim = 128,
              .max_positions = 131072,
              .norm_epsilon = 1.5625e-7},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.fused_gate_up = true;
  spec.qkv_bias = config.bool_or("attention_bias", true);  // the output map has none
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_partial_rope(config, {.usual_share = 0.5, .neighbours = true}, spec);
  return spec;
}

architecture::DecoderSpec read_glm4_spec(const io::JsonReader& config) {
  architecture::DecoderSpec spec = read_glm_spec(config);
  spec.family = "glm4";
  spec.norms = architecture::kGlmsNormsAround;
  return spec;
}

}  // namespace convoy::families
