// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/gemma2/gemma2.h"

#include <cmath>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

constexpr const char* kScoreCap = "attn_logit_softcapping";
constexpr const char* kLogitCap = "final_logit_softcapping";

}  // namespace

architecture::DecoderSpec read_gemma2_spec(const io::JsonReader& config) {
  refuse_unsupported_but(config, {kScoreCap, kLogitCap});
  architecture::DecoderSpec spec;
  spec.family = "gemma2";
  read_sizes(config,
             {.vocab_size = 256000,
              .num_heads = 8,
              .num_kv_heads = 4,
              .head_dim = 256,
              .max_positions = 8192},
             spec);
  spec.activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.norm_order = architecture::NormOrder::ScaleByOnePlusThenCast;
  spec.norms = architecture::kNormsAround;
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.attention_scale = 1.0 / std::sqrt(config.double_or("query_pre_attn_scalar", 256, 1e-3, 1e9));
  spec.score_cap = read_soft_cap(config, kScoreCap, 50.0);
  spec.logit_cap = read_soft_cap(config, kLogitCap, 30.0);
  spec.tied_head = config.bool_or("tie_word_embeddings", true);
  read_rope(config, spec);
  constexpr int64_t kInterval = 2;
  const std::vector<int64_t> windows = read_windows(config, spec.num_layers(), kInterval);
  for (size_t i = 0; i < windows.size(); ++i) spec.layers[i].sliding_window = windows[i];
  return spec;
}

}  // namespace convoy::families
