// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/qwen2/qwen2.h"

#include <cmath>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

architecture::DecoderSpec read_qwen2_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "qwen2";
  read_sizes(config, {.max_positions = 32768}, spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.qkv_bias = true;  // config.json has no field for it
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rope(config, spec);
  read_qwen_windows(config, spec);
  return spec;
}

}  // namespace convoy::families
