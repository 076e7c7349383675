// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/muse_glimmer/muse_glimmer.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/missing_forms.h"

namespace convoy::families {
namespace {

constexpr const char* kGlimmerCap = "final_logit_softcapping";
constexpr const char* kThetas = "layer_rope_theta";

// The usual place of layers that see all keys and do not rotate: every fourth one, counted back
// from the last.
bool is_full_unlisted(int64_t layer, int64_t num_layers) {
  constexpr int64_t kInterval = 4;
  return (num_layers - 1 - layer) % kInterval == 0;
}

// 0 in layer_rope_theta means a layer that does not rotate. transformers rotates all the others by
// rope_theta, whatever their numbers are. The first entries of a longer list are used.
bool layer_rotates(const io::JsonReader& config, const io::Json& theta, double rope_theta) {
  if (!theta.is_number()) config.fail(kThetas, "must be a list of numbers");
  if (theta.get<double>() == 0) return false;
  if (theta.get<double>() != rope_theta)
    refuse_form(config, kThetas,
                fmt::format("a rope_theta of its own in a layer ({} beside {})",
                            theta.get<double>(), rope_theta),
                "take a model of this family that rotates its layers alike");
  return true;
}

void read_rotations(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  read_rope(config, spec);
  const architecture::RopeSpec& rope = spec.ropes.front();
  if (rope.kind == architecture::RopeKind::LongRope)
    refuse_form(config, config.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                "longrope beside sliding windows",
                "take a model of this family that rotates otherwise");
  const int64_t num_layers = spec.num_layers();
  const io::Json* const thetas = config.has(kThetas) ? config.find(kThetas) : nullptr;
  if (thetas != nullptr && (!thetas->is_array() || std::ssize(*thetas) < num_layers))
    config.fail(kThetas, fmt::format("must be a list of at least num_hidden_layers, {}, numbers",
                                     num_layers));
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const bool turns =
        thetas == nullptr
            ? !is_full_unlisted(layer, num_layers)
            : layer_rotates(config, (*thetas)[static_cast<size_t>(layer)], rope.theta);
    spec.layers[layer].rope = turns ? 0 : architecture::kNoRope;
  }
}

void read_sliding_windows(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  constexpr int64_t kUsualWindow = 2048;
  const int64_t num_layers = spec.num_layers();
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  if (sliding.empty())
    for (int64_t layer = 0; layer < num_layers; ++layer)
      sliding.push_back(!is_full_unlisted(layer, num_layers));
  const std::vector<int64_t> windows = windows_of(config, sliding, kUsualWindow);
  for (size_t layer = 0; layer < windows.size(); ++layer)
    spec.layers[layer].sliding_window = windows[layer];
}

}  // namespace

architecture::DecoderSpec read_muse_glimmer_spec(const io::JsonReader& config) {
  refuse_unsupported_but(config, {kGlimmerCap});
  // transformers gives the biases to queries, keys, values and outputs, and none to the gate.
  if (config.bool_or("attention_bias", false))
    refuse_form(config, "attention_bias", "biases of attention",
                "take a model of this family without them");
  architecture::DecoderSpec spec;
  spec.family = "muse_glimmer";
  read_sizes(config,
             {.vocab_size = 202048,
              .num_heads = 32,
              .num_kv_heads = 2,
              .head_dim = 128,
              .max_positions = 131072,
              .norm_epsilon = 1e-5},
             spec);
  spec.activation = read_activation(config, "hidden_activation", "silu");
  spec.norm_order = architecture::NormOrder::ScaleByOnePlusThenCast;
  spec.final_norm_order = architecture::NormOrder::CastThenScale;
  spec.norms = architecture::kNormsAround;
  spec.after_norm_epsilon = config.double_or("post_norm_eps", 1e-8, 0.0, 1.0);
  spec.embedding_norm = true;
  spec.query_key_norm = true;
  spec.weightless_head_norms = true;
  spec.attention_gate = true;
  spec.gate_map = true;
  spec.attention_scale = config.double_or("qk_scale_factor", 3.87, 1e-6, 1e6) /
                         std::sqrt(static_cast<double>(spec.head_dim));
  spec.logit_scale = config.double_or("output_multiplier", 0.19611613513818404, 1e-6, 1e6);
  spec.logit_cap = read_soft_cap(config, kGlimmerCap, 20.0);
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rotations(config, spec);
  read_sliding_windows(config, spec);
  return spec;
}

architecture::DecoderSpec read_nested_muse_glimmer_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec = read_muse_glimmer_spec(config.require_object("text_config"));
  spec.text_module = "model.language_model";
  // The head and its key belong to the whole model: transformers does not read this key in
  // text_config.
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  return spec;
}

}  // namespace convoy::families
