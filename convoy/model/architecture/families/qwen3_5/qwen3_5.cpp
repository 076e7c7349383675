// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/qwen3_5/qwen3_5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/missing_forms.h"

namespace convoy::families {
namespace {

using architecture::TokenMixer;

// Every fourth layer has attention.
std::vector<TokenMixer> usual_mixers(const io::JsonReader& config, int64_t num_layers) {
  const int64_t interval = config.int_or("full_attention_interval", 4, 1, kMostPositions);
  std::vector<TokenMixer> mixers;
  for (int64_t layer = 0; layer < num_layers; ++layer)
    mixers.push_back((layer + 1) % interval == 0 ? TokenMixer::Attention
                                                 : TokenMixer::GatedDeltaNet);
  return mixers;
}

std::vector<TokenMixer> listed_mixers(const io::JsonReader& config) {
  std::vector<TokenMixer> mixers;
  for (const std::string& type : config.strings_or_empty("layer_types")) {
    if (type != "full_attention" && type != "linear_attention")
      refuse_form(config, "layer_types", fmt::format("layers of the type `{}`", type),
                  "take a model of this family whose layers are full_attention or "
                  "linear_attention");
    mixers.push_back(type == "linear_attention" ? TokenMixer::GatedDeltaNet
                                                : TokenMixer::Attention);
  }
  return mixers;
}

std::vector<TokenMixer> read_mixers(const io::JsonReader& config, int64_t num_layers) {
  std::vector<TokenMixer> mixers = listed_mixers(config);
  if (mixers.empty()) mixers = usual_mixers(config, num_layers);
  if (std::ssize(mixers) != num_layers)
    config.fail("layer_types",
                fmt::format("names {} layers, num_hidden_layers is {}", mixers.size(), num_layers));
  if (std::find(mixers.begin(), mixers.end(), TokenMixer::Attention) == mixers.end())
    refuse_form(config, config.has("layer_types") ? "layer_types" : "num_hidden_layers",
                "no layer of attention", "take a model of this family that has some");
  return mixers;
}

architecture::DeltaNetSpec read_delta_net(const io::JsonReader& config) {
  constexpr int64_t kMostDeltaHeads = 4096;
  constexpr int64_t kMostDeltaHeadDim = 4096;
  constexpr int64_t kMostConvWidth = 64;
  const architecture::DeltaNetSpec sizes{
      .num_key_heads = config.int_or("linear_num_key_heads", 16, 1, kMostDeltaHeads),
      .num_value_heads = config.int_or("linear_num_value_heads", 32, 1, kMostDeltaHeads),
      .key_head_dim = config.int_or("linear_key_head_dim", 128, 1, kMostDeltaHeadDim),
      .value_head_dim = config.int_or("linear_value_head_dim", 128, 1, kMostDeltaHeadDim),
      .conv_width = config.int_or("linear_conv_kernel_dim", 4, 1, kMostConvWidth)};
  if (sizes.num_value_heads % sizes.num_key_heads != 0)
    config.fail("linear_num_value_heads",
                fmt::format("{} is no multiple of linear_num_key_heads, {}", sizes.num_value_heads,
                            sizes.num_key_heads));
  return sizes;
}

// transformers has the gate in every model of this family, whatever the key says.
void check_gate(const io::JsonReader& config) {
  if (!config.bool_or("attn_output_gate", true))
    refuse_form(config, "attn_output_gate", "no output gate of attention",
                "take a model of this family that has the gate");
}

}  // namespace

architecture::DecoderSpec read_qwen3_5_spec(const io::JsonReader& config) {
  refuse_unsupported_but(config, {kPartialRotation, kOutputGate});
  check_gate(config);
  architecture::DecoderSpec spec;
  spec.family = "qwen3_5";
  read_sizes(config,
             {.vocab_size = 248320,
              .num_heads = 16,
              .num_kv_heads = 4,
              .head_dim = 256,
              .max_positions = 32768},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  // The convolution takes the activation of the feed-forward.
  if (spec.activation != architecture::Activation::Silu)
    refuse_form(config, "hidden_act", "another activation than silu",
                "take a model of this family with silu");
  spec.norm_order = architecture::NormOrder::ScaleByOnePlusThenCast;
  spec.query_key_norm = true;
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.attention_gate = true;
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  // The three positions of mrope are one and the same for text.
  read_partial_rope(config, {.usual_share = 0.25}, spec);
  spec.delta_net = read_delta_net(config);
  const std::vector<TokenMixer> mixers = read_mixers(config, spec.num_layers());
  for (size_t layer = 0; layer < mixers.size(); ++layer) spec.layers[layer].mixer = mixers[layer];
  return spec;
}

architecture::DecoderSpec read_nested_qwen3_5_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec = read_qwen3_5_spec(config.require_object("text_config"));
  spec.text_module = "model.language_model";
  if (config.has("tie_word_embeddings"))
    spec.tied_head = config.bool_or("tie_word_embeddings", spec.tied_head);
  return spec;
}

}  // namespace convoy::families
