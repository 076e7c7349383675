// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/ministral3/ministral3.h"

#include <cmath>
#include <string>
#include <utility>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/missing_forms.h"
#include "convoy/model/architecture/families/mistral/mistral.h"

namespace convoy::families {
namespace {

// Adds transformers' default rope rule to a config.json without one.
io::JsonReader with_usual_rope(const io::JsonReader& config) {
  if (config.has("rope_parameters") || config.has("rope_scaling")) return config;
  io::Json changed = config.value();
  changed["rope_parameters"] = {{"rope_type", "yarn"},
                                {"rope_theta", 1e6},
                                {"factor", 16.0},
                                {"original_max_position_embeddings", 16384},
                                {"mscale", 1.0},
                                {"mscale_all_dim", 1.0},
                                {"llama_4_scaling_beta", 0.1}};
  return {std::move(changed), config.place()};
}

// The factor of a query grows with the number of whole original lengths before its position.
void read_query_growth(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  const auto newer = config.optional_object("rope_parameters");
  const auto rule = newer ? newer : config.optional_object("rope_scaling");
  if (!rule) return;
  spec.query_growth = rule->double_or("llama_4_scaling_beta", 0.0, 0.0, 1e3);
  spec.query_growth_positions =
      rule->int_or("original_max_position_embeddings", spec.max_positions, 1, kMostPositions);
}

}  // namespace

architecture::DecoderSpec read_ministral3_spec(const io::JsonReader& given) {
  const io::JsonReader config = with_usual_rope(given);
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "ministral3";
  read_sizes(config,
             {.vocab_size = 131072,
              .num_heads = 32,
              .num_kv_heads = 8,
              .head_dim = 128,
              .max_positions = 262144,
              .norm_epsilon = 1e-5},
             spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_query_growth(config, spec);
  read_rope(config, spec);
  if (spec.query_growth > 0 && spec.ropes.front().kind == architecture::RopeKind::LongRope)
    refuse_form(config, config.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                "longrope beside queries that grow",
                "take a model of this family that rotates otherwise");
  const int64_t window = config.optional_int("sliding_window", 1, kMostPositions).value_or(0);
  for (architecture::LayerSpec& layer : spec.layers) layer.sliding_window = window;
  return spec;
}

architecture::DecoderSpec read_nested_mistral3_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  const io::JsonReader text = config.require_object("text_config");
  const std::string type = text.string_or("model_type", "mistral");
  if (type != "mistral" && type != "ministral3") refuse_type(text, type, {"mistral", "ministral3"});
  architecture::DecoderSpec spec =
      type == "mistral" ? read_mistral_spec(text) : read_ministral3_spec(text);
  spec.text_module = "model.language_model";
  spec.tied_head = config.bool_or("tie_word_embeddings", spec.tied_head);
  return spec;
}

}  // namespace convoy::families
