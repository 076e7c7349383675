// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/gemma2/gemma2.h"

#include <cmath>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"

namespace convoy::families {
namespace {

constexpr const char* kScoreCap = "attn_logit_softcapping";
constexpr const char* kLogitCap = "final_logit_softcapping";

// Without layer_types, every second layer sees all keys.
std::vector<bool> read_gemma2_sliding_layers(const io::JsonReader& config, int64_t num_layers) {
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  if (!sliding.empty()) return sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(i % 2 == 0);
  return sliding;
}

void read_gemma2_windows(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  const int64_t window = config.int_or("sliding_window", 4096, 1, kMostPositions);
  const std::vector<bool> sliding = read_gemma2_sliding_layers(config, spec.num_layers());
  for (int64_t i = 0; i < spec.num_layers(); ++i) {
    if (sliding[i] && config.find("sliding_window") != nullptr && !config.has("sliding_window"))
      config.fail("sliding_window", "is null, but layers of this model have one");
    spec.layers[i].sliding_window = sliding[i] ? window : 0;
  }
}

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
  read_gemma2_windows(config, spec);
  return spec;
}

}  // namespace convoy::families
