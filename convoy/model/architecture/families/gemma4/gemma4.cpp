// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/gemma4/gemma4.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/missing_forms.h"

namespace convoy::families {
namespace {

using architecture::DecoderSpec;
using architecture::LayerSpec;
using architecture::RopeSpec;

constexpr const char* kFinalCap = "final_logit_softcapping";
constexpr const char* kBidirectional = "use_bidirectional_attention";
constexpr const char* kPerLayer = "per_layer_config";
constexpr int64_t kMostOfHead = 4096;  // heads, and features of one
constexpr int64_t kMostInputWidth = int64_t{1} << 20;
constexpr int64_t kMostInputVocab = int64_t{1} << 24;

// Values of transformers for absent keys where the two model types differ.
struct Gemma4Defaults {
  int64_t max_positions;
  int64_t sliding_window;
  int64_t layer_input_width;
};
constexpr Gemma4Defaults kGemma4 = {131072, 512, 256};
constexpr Gemma4Defaults kGemma4Unified = {262144, 1024, 0};

void refuse_missing_forms(const io::JsonReader& config) {
  refuse_unsupported_but(config, {kFinalCap, kBidirectional});
  // "vision": tokens of an image see each other, tokens of text do not look ahead.
  if (config.has(kBidirectional) && *config.find(kBidirectional) != "vision")
    refuse_form(config, kBidirectional, "attention that looks ahead", take_nearest("gemma3_text"));
  if (config.bool_or("enable_moe_block", false))
    refuse_form(config, "enable_moe_block", "a mixture of experts",
                "take a dense model of this family: E2B, E4B, 12B or 31B");
}

// True where a layer has a window. transformers lets the last layer see all keys.
std::vector<bool> read_sliding(const io::JsonReader& config, int64_t num_layers) {
  constexpr int64_t kInterval = 6;
  std::vector<bool> sliding = read_sliding_layers(config, num_layers, kInterval);
  sliding.back() = false;
  return sliding;
}

LayerSpec& layer_at(const io::JsonReader& overrides, const std::string& key, DecoderSpec& spec) {
  int64_t index = -1;
  const char* const end = key.data() + key.size();
  const auto [rest, error] = std::from_chars(key.data(), end, index);
  if (error != std::errc() || rest != end || index < 0 || index >= spec.num_layers())
    overrides.fail(key, fmt::format("is no layer of {}", spec.num_layers()));
  return spec.layers[static_cast<size_t>(index)];
}

// transformers 5 saves the sizes of layers one by one, in place of the global sizes.
void read_overrides(const io::JsonReader& config, DecoderSpec& spec) {
  const io::JsonReader overrides = config.require_object(kPerLayer);
  for (const std::string& key : overrides.keys()) {
    LayerSpec& layer = layer_at(overrides, key, spec);
    const io::JsonReader sizes = overrides.require_object(key);
    for (const std::string& name : sizes.keys())
      if (name != "head_dim" && name != "num_key_value_heads")
        refuse_form(config, kPerLayer, fmt::format("a `{}` of one layer", name),
                    "take a model of this family whose layers differ in head_dim and "
                    "num_key_value_heads alone");
    layer.head_dim = sizes.int_or("head_dim", 0, 2, kMostOfHead);
    layer.num_kv_heads = sizes.int_or("num_key_value_heads", 0, 1, kMostOfHead);
  }
}

void read_global_heads(const io::JsonReader& config, const std::vector<bool>& sliding,
                       bool keys_are_values, DecoderSpec& spec) {
  const int64_t head_dim = config.int_or("global_head_dim", 512, 2, kMostOfHead);
  const int64_t heads = config.int_or("num_global_key_value_heads", 0, 1, kMostOfHead);
  for (size_t layer = 0; layer < sliding.size(); ++layer) {
    if (sliding[layer]) continue;
    spec.layers[layer].head_dim = head_dim;
    if (keys_are_values) spec.layers[layer].num_kv_heads = heads;
  }
}

void check_heads(const io::JsonReader& config, const DecoderSpec& spec) {
  const char* const key = config.has(kPerLayer) ? kPerLayer : "num_hidden_layers";
  for (const LayerSpec& layer : spec.layers) {
    const int64_t head_dim = spec.head_dim_of(layer), kv_heads = spec.kv_heads_of(layer);
    if (head_dim % 2 != 0)
      config.fail(config.has(kPerLayer) ? kPerLayer : "global_head_dim",
                  fmt::format("{} features cannot be rotated in pairs", head_dim));
    if (spec.num_heads % kv_heads != 0)
      config.fail(
          config.has(kPerLayer) ? kPerLayer : "num_global_key_value_heads",
          fmt::format("{} does not divide num_attention_heads, {}", kv_heads, spec.num_heads));
    for (const LayerSpec& other : spec.layers)
      if (other.rope == layer.rope &&
          (spec.head_dim_of(other) != head_dim || spec.kv_heads_of(other) != kv_heads))
        config.fail(key, "gives layers of one type different heads");
  }
}

// Layers from the first shared one on read the keys and values of the last layer of their type
// before it.
void read_shared_keys(const io::JsonReader& config, const std::vector<bool>& sliding,
                      DecoderSpec& spec) {
  constexpr const char* kShared = "num_kv_shared_layers";
  const int64_t first = spec.num_layers() - config.int_or(kShared, 0, 0, spec.num_layers());
  const bool double_wide = config.bool_or("use_double_wide_mlp", false);
  for (int64_t layer = first; layer < spec.num_layers(); ++layer) {
    int64_t source = first - 1;
    while (source >= 0 && sliding[source] != sliding[layer]) --source;
    if (source < 0)
      config.fail(kShared, fmt::format("leaves no layer of the type of layer {} that makes keys "
                                       "and values",
                                       layer));
    spec.layers[layer].keys_of = source;
    if (double_wide) spec.layers[layer].ffn_size = 2 * spec.ffn_size;
  }
}

RopeSpec read_full_rule(const io::JsonReader& parameters, const DecoderSpec& spec) {
  constexpr double kFullTheta = 1e6;
  if (parameters.string_or("rope_type", "default") != "proportional")
    return read_rope_rule(parameters, kFullTheta, spec.max_positions);
  RopeSpec rope{.kind = architecture::RopeKind::Proportional};
  rope.theta = parameters.double_or("rope_theta", kFullTheta, kLeastTheta, kMostTheta);
  rope.factor = parameters.double_or("factor", 1.0, 1e-6, 1e6);
  const std::string share_key(kPartialRotation);
  const double share = parameters.double_or(share_key, 1.0, 0.0, 1.0);
  const auto head_dim = static_cast<double>(spec.head_dim_of_rope(kFullRope));
  rope.rotated_features = 2 * static_cast<int64_t>(std::floor(share * head_dim / 2));
  if (rope.rotated_features == 0) parameters.fail(share_key, "leaves no feature to be rotated");
  return rope;
}

std::vector<RopeSpec> read_ropes(const io::JsonReader& config, const DecoderSpec& spec) {
  constexpr double kSlidingTheta = 1e4;
  const auto parameters = config.optional_object("rope_parameters");
  if (!parameters) {
    const io::JsonReader usual(
        {{"rope_type", "proportional"}, {std::string(kPartialRotation), 0.25}}, config.place());
    return {read_full_rule(usual, spec), {.theta = kSlidingTheta}};
  }
  std::vector<RopeSpec> ropes(2);
  ropes[kFullRope] = read_full_rule(parameters->require_object("full_attention"), spec);
  ropes[kSlidingRope] = read_rope_rule(parameters->require_object("sliding_attention"),
                                       kSlidingTheta, spec.max_positions);
  for (const RopeSpec& rope : ropes)
    if (rope.kind == architecture::RopeKind::LongRope)
      refuse_form(config, "rope_parameters", "longrope beside sliding windows",
                  "take a model of this family that rotates otherwise");
  return ropes;
}

architecture::LayerInputsSpec read_layer_inputs(const io::JsonReader& config, int64_t usual_width,
                                                int64_t vocab_size) {
  constexpr const char* kVocab = "vocab_size_per_layer_input";
  const int64_t width =
      config.int_or("hidden_size_per_layer_input", usual_width, 0, kMostInputWidth);
  if (width == 0) return {};
  const int64_t rows = config.int_or(kVocab, 262144, 1, kMostInputVocab);
  if (rows < vocab_size)
    config.fail(kVocab, fmt::format("{} is below vocab_size, {}", rows, vocab_size));
  return {.width = width, .vocab_size = rows};
}

DecoderSpec read_text_spec(const io::JsonReader& config, const Gemma4Defaults& defaults) {
  refuse_missing_forms(config);
  DecoderSpec spec;
  spec.family = "gemma4";
  read_sizes(config,
             {.vocab_size = 262144,
              .num_heads = 8,
              .num_kv_heads = 4,
              .head_dim = 256,
              .max_positions = defaults.max_positions},
             spec);
  spec.activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.query_key_norm = true;
  spec.value_norm = true;
  spec.norms = architecture::kNormsAround;
  spec.qkv_bias = config.bool_or("attention_bias", false);
  spec.attention_output_bias = spec.qkv_bias;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.layer_scalars = true;
  spec.logit_cap = read_soft_cap(config, kFinalCap);
  spec.tied_head = config.bool_or("tie_word_embeddings", true);
  spec.layer_inputs = read_layer_inputs(config, defaults.layer_input_width, spec.vocab_size);

  const std::vector<bool> sliding = read_sliding(config, spec.num_layers());
  const int64_t window =
      config.int_or("sliding_window", defaults.sliding_window, 1, kMostPositions);
  const bool keys_are_values = config.bool_or("attention_k_eq_v", false);
  for (size_t layer = 0; layer < sliding.size(); ++layer)
    spec.layers[layer] = {.keys_are_values = keys_are_values && !sliding[layer],
                          .rope = sliding[layer] ? kSlidingRope : kFullRope,
                          .sliding_window = sliding[layer] ? window : 0};
  if (config.find(kPerLayer) == nullptr)
    read_global_heads(config, sliding, keys_are_values, spec);
  else if (config.has(kPerLayer))
    read_overrides(config, spec);
  check_heads(config, spec);
  read_shared_keys(config, sliding, spec);
  spec.ropes = read_ropes(config, spec);
  return spec;
}

DecoderSpec read_under_text_config(const io::JsonReader& config, const Gemma4Defaults& defaults) {
  refuse_unsupported(config);
  DecoderSpec spec = read_text_spec(config.require_object("text_config"), defaults);
  spec.text_module = "model.language_model";
  spec.tied_head = config.bool_or("tie_word_embeddings", spec.tied_head);
  return spec;
}

}  // namespace

DecoderSpec read_gemma4_spec(const io::JsonReader& config) {
  return read_text_spec(config, kGemma4);
}

DecoderSpec read_nested_gemma4_spec(const io::JsonReader& config) {
  return read_under_text_config(config, kGemma4);
}

DecoderSpec read_gemma4_unified_spec(const io::JsonReader& config) {
  return read_text_spec(config, kGemma4Unified);
}

DecoderSpec read_nested_gemma4_unified_spec(const io::JsonReader& config) {
  return read_under_text_config(config, kGemma4Unified);
}

}  // namespace convoy::families
