// SPDX-License-Identifier: Apache-2.0
//
// All differences between decoder-only transformers, as plain data. families/ makes it from
// config.json; nn/decoder runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convoy::architecture {

enum class RopeKind { Default, Linear, Llama3, Yarn, LongRope, Proportional };

struct RopeSpec {
  RopeKind kind = RopeKind::Default;
  double theta = 10000.0;
  double factor = 1.0;  // Linear, Llama3, Yarn, Proportional
  // Llama3 only: wavelengths between original/high and original/low are blended.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_positions = 8192;  // Llama3, Yarn, LongRope
  // Yarn only (arXiv 2309.00071): features that turn more than beta_fast times within the original
  // positions keep their angles; the wavelengths of features with fewer than beta_slow turns are
  // stretched by `factor`.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool whole_features = true;  // feature indices at the bounds are rounded outwards
  double table_scale = 1.0;    // multiplies cosines and sines: sharpens attention over long texts
  // LongRope only (arXiv 2402.13753): the divisor of each pair's frequency. `divisors` is for rows
  // of up to original_max_positions tokens, `long_divisors` for longer rows.
  std::vector<double> divisors = {};
  std::vector<double> long_divisors = {};
  // Number of rotated features, which are the first of a head; 0: all. With Proportional, half of
  // the rotated features are the first of the head's first half, the other half are the first of
  // its second half, and they have the frequencies of a fully rotated head.
  int64_t rotated_features = 0;
  // True: a rotated pair is features 2i and 2i + 1. False: i and i + half of the rotated features.
  bool neighbours = false;
  bool operator==(const RopeSpec&) const = default;
};

enum class NormOrder {
  CastThenScale,           // Llama, Qwen: normalise in fp32, cast to the input dtype, then times w
  ScaleByOnePlusThenCast,  // Gemma: normalise in fp32, times (1 + w) in fp32, then cast
};

enum class Activation { Silu, GeluTanh };

// The ends of the names of a block's norms; empty: the block has no norm in this place.
struct BlockNorms {
  std::string before_attention;
  std::string after_attention;  // norm of the output, before it is added
  std::string before_ffn;
  std::string after_ffn;
  bool operator==(const BlockNorms&) const = default;
};
// In families with two norms post_attention_layernorm is the norm before the feed-forward. In the
// others it is the norm after attention.
inline const BlockNorms kNormsBefore = {
    .before_attention = "input_layernorm",
    .after_attention = "",
    .before_ffn = "post_attention_layernorm",
    .after_ffn = "",
};
inline const BlockNorms kNormsAround = {
    // Gemma
    .before_attention = "input_layernorm",
    .after_attention = "post_attention_layernorm",
    .before_ffn = "pre_feedforward_layernorm",
    .after_ffn = "post_feedforward_layernorm",
};
inline const BlockNorms kNormsAfter = {
    // OLMo 2: maps read the hidden states without a norm
    .before_attention = "",
    .after_attention = "post_attention_layernorm",
    .before_ffn = "",
    .after_ffn = "post_feedforward_layernorm",
};
inline const BlockNorms kGlmsNormsAround = {
    .before_attention = "input_layernorm",
    .after_attention = "post_self_attn_layernorm",
    .before_ffn = "post_attention_layernorm",
    .after_ffn = "post_mlp_layernorm",
};

inline constexpr int64_t kNoRope = -1;
inline constexpr int64_t kOwnKeys = -1;

// The part of a block in which tokens read other tokens.
enum class TokenMixer { Attention, GatedDeltaNet };

struct LayerSpec {
  TokenMixer mixer = TokenMixer::Attention;
  int64_t ffn_size = 0;  // 0: DecoderSpec::ffn_size
  // The members from here on describe attention. head_dim and num_kv_heads are 0 where the values
  // of DecoderSpec hold.
  int64_t head_dim = 0;
  int64_t num_kv_heads = 0;
  // Index of the earlier layer, with the same heads, rotation and window, whose keys and values
  // this layer reads. kOwnKeys: this layer makes its own. A layer that reads another layer's keys
  // and values has no maps for them.
  int64_t keys_of = kOwnKeys;
  bool keys_are_values = false;  // the outputs of k_proj, before their norm, are the values too
  int64_t rope = 0;  // index into DecoderSpec::ropes, or kNoRope: queries and keys are not rotated
  // 0: full attention; else the number of keys that a query sees, its own key included.
  int64_t sliding_window = 0;
};

// Sizes of Gated DeltaNet (arXiv 2412.06464), alike in all its layers. A key head serves
// num_value_heads / num_key_heads value heads that follow one another.
struct DeltaNetSpec {
  int64_t num_key_heads = 0;
  int64_t num_value_heads = 0;
  int64_t key_head_dim = 0;
  int64_t value_head_dim = 0;
  int64_t conv_width = 0;  // tokens that the short convolution reads, the token itself among them

  int64_t key_width() const { return num_key_heads * key_head_dim; }
  int64_t value_width() const { return num_value_heads * value_head_dim; }
  int64_t conv_channels() const { return 2 * key_width() + value_width(); }
  bool operator==(const DeltaNetSpec&) const = default;
};

// Inputs of the blocks beside the hidden states (Gemma 4): for each token and layer a row of
// embed_tokens_per_layer, and a part of the output of a map of the token's embedding.
struct LayerInputsSpec {
  int64_t width = 0;  // 0: blocks have none
  int64_t vocab_size = 0;

  bool are_there() const { return width > 0; }
  bool operator==(const LayerInputsSpec&) const = default;
};

struct DecoderSpec {
  std::string family;
  // The module of a larger model that contains this text model, as transformers names it; it takes
  // the place of `model` in names. Empty: the text model is the whole model.
  std::string text_module = {};
  int64_t vocab_size = 0;  // padded rows included
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_size = 0;
  int64_t max_positions = 0;

  double norm_epsilon = 1e-6;
  std::optional<double> after_norm_epsilon = {};  // epsilon of output norms; none: norm_epsilon
  NormOrder norm_order = NormOrder::CastThenScale;
  std::optional<NormOrder> final_norm_order = {};  // order of the last norm; none: norm_order
  // True: the embedding's output goes through an RMSNorm without a weight, with norm_epsilon
  // (Glimmer).
  bool embedding_norm = false;
  bool query_key_norm = false;  // RMSNorm over head_dim of queries and keys, before the rotation
  // with query_key_norm: one norm over the features of all heads (OLMo)
  bool norm_over_heads = false;
  // with query_key_norm: the norms have no weight (Glimmer)
  bool weightless_head_norms = false;
  bool value_norm = false;  // RMSNorm without a weight over head_dim of values
  BlockNorms norms = kNormsBefore;

  // True: the parts are stored as the rows of one map. Adapters, codes and files then have that map
  // in place of the parts.
  bool fused_qkv = false;      // qkv_proj
  bool fused_gate_up = false;  // gate_up_proj
  bool qkv_bias = false;
  bool attention_output_bias = false;
  // The outputs of attention are multiplied by the sigmoid of a gate. q_proj has, for each head,
  // its query and then its gate.
  bool attention_gate = false;
  bool gate_map = false;  // with attention_gate: gate_proj has the gates of all heads (Glimmer)
  bool ffn_bias = false;
  Activation activation = Activation::Silu;

  double embedding_scale = 1.0;  // cast to the weight dtype before it multiplies
  double attention_scale = 1.0;
  // Queries at position p are multiplied by 1 + query_growth * ln(1 + floor(p /
  // query_growth_positions)).
  double query_growth = 0.0;
  int64_t query_growth_positions = 1;
  double residual_scale = 1.0;  // multiplies the outputs of attention and feed-forward
  bool layer_scalars = false;   // multiplies a block's output by a stored number, never trained
  double logit_scale = 1.0;  // multiplies the head's input, so it applies to all losses and draws
  // Soft caps: x becomes cap * tanh(x / cap); 0: no cap. score_cap applies to the scaled attention
  // scores, before the mask. logit_cap applies to the logits.
  double score_cap = 0.0;
  double logit_cap = 0.0;
  bool tied_head = false;

  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  DeltaNetSpec delta_net = {};  // sizes of the layers with Gated DeltaNet
  LayerInputsSpec layer_inputs = {};
  int64_t num_layers() const { return static_cast<int64_t>(layers.size()); }
  int64_t head_dim_of(const LayerSpec& layer) const {
    return layer.head_dim > 0 ? layer.head_dim : head_dim;
  }
  int64_t kv_heads_of(const LayerSpec& layer) const {
    return layer.num_kv_heads > 0 ? layer.num_kv_heads : num_kv_heads;
  }
  int64_t ffn_size_of(const LayerSpec& layer) const {
    return layer.ffn_size > 0 ? layer.ffn_size : ffn_size;
  }
  int64_t widest_ffn() const;
  int64_t widest_head() const;
  // The head_dim of the layers that rotate by `ropes[rope]`.
  int64_t head_dim_of_rope(int64_t rope) const;
  int64_t num_layers_with(TokenMixer mixer) const;
};

// A linear map of a block as it is stored.
struct StoredMap {
  const char* suffix;  // "self_attn.q_proj"
  int64_t out = 0;
};
inline constexpr const char* kGateMap = "self_attn.gate_proj";
// The maps that read the input of attention, of Gated DeltaNet or of the feed-forward, in the order
// of their outputs.
std::vector<StoredMap> query_key_value_maps(const DecoderSpec& spec, const LayerSpec& layer);
std::vector<StoredMap> delta_net_maps(const DecoderSpec& spec);
std::vector<StoredMap> gate_up_maps(const DecoderSpec& spec, const LayerSpec& layer);

struct ParameterDeclaration {
  std::string name;  // Hugging Face's name
  std::vector<int64_t> shape;
  bool operator==(const ParameterDeclaration&) const = default;
};

// Every parameter of a decoder, in the order in which nn::Decoder reads them; a tied head is not
// listed.
std::vector<ParameterDeclaration> declare_parameters(const DecoderSpec& spec);

// Is it the weight of a linear map other than the head?
bool is_map_of_blocks(const ParameterDeclaration& parameter);

// Is `name` a parameter that files have and the model does not have? These are the maps and norms
// of keys and values in a layer that reads the keys and values of another layer.
bool is_unread(const DecoderSpec& spec, const std::string& name);

}  // namespace convoy::architecture
