// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/gemma3/gemma3.h"

#include <cmath>
#include <string>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {

architecture::DecoderSpec read_gemma3_spec(const io::JsonReader& config) {
  // transformers reads attn_logit_softcapping for this family, and does not apply it.
  refuse_unsupported_but(config, {"final_logit_softcapping"});
  architecture::DecoderSpec spec;
  spec.family = "gemma3";
  // config.json of the 4B and larger models omits these sizes, so transformers' defaults apply.
  read_sizes(config,
             {.vocab_size = 262208,
              .num_heads = 8,
              .num_kv_heads = 4,
              .head_dim = 256,
              .max_positions = 131072},
             spec);
  spec.activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.norm_order = architecture::NormOrder::ScaleByOnePlusThenCast;
  spec.query_key_norm = true;
  spec.norms = architecture::kNormsAround;
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.attention_scale = 1.0 / std::sqrt(config.double_or("query_pre_attn_scalar", 256, 1e-3, 1e9));
  spec.logit_cap = read_soft_cap(config, "final_logit_softcapping");
  spec.tied_head = config.bool_or("tie_word_embeddings", true);
  spec.ropes = read_ropes_by_type(
      config,
      {.full_theta = config.double_or("rope_theta", 1e6, kLeastTheta, kMostTheta),
       .sliding_theta = config.double_or("rope_local_base_freq", 1e4, kLeastTheta, kMostTheta)},
      spec.max_positions);

  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  const int64_t window = config.int_or("sliding_window", 4096, 1, int64_t{1} << 31);
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  if (sliding.empty()) {
    const std::string key =
        config.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    sliding = read_sliding_layers(config, num_layers, config.int_or(key, 6, 1, 1 << 20));
  }
  for (int64_t i = 0; i < num_layers; ++i) {
    spec.layers[i] = {.rope = sliding[i] ? kSlidingRope : kFullRope,
                      .sliding_window = sliding[i] ? window : 0};
  }
  return spec;
}

architecture::DecoderSpec read_nested_gemma3_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec = read_gemma3_spec(config.require_object("text_config"));
  spec.text_module = "model.language_model";
  if (config.has("tie_word_embeddings")) {
    spec.tied_head = config.bool_or("tie_word_embeddings", spec.tied_head);
  }
  return spec;
}

}  // namespace convoy::families
