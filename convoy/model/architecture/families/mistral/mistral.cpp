// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/mistral/mistral.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/missing_forms.h"

namespace convoy::families {
namespace {

// One window in every layer, or none: null means none, and an absent key means transformers' 4096.
void read_window(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  constexpr int64_t kDefaultWindow = 4096;
  const bool is_null = config.find("sliding_window") != nullptr && !config.has("sliding_window");
  const int64_t window =
      is_null ? 0 : config.int_or("sliding_window", kDefaultWindow, 1, kMostPositions);
  const std::vector<bool> sliding = read_layer_types(config, spec.num_layers());
  if (std::adjacent_find(sliding.begin(), sliding.end(), std::not_equal_to<>()) != sliding.end())
    refuse_form(config, "layer_types", "windows in a part of its layers",
                "take a model of this family whose layers are alike");
  for (const bool layer_slides : sliding) {
    if (layer_slides != (window > 0))
      config.fail("layer_types",
                  "contradicts sliding_window, which all layers of this family share");
  }
  for (architecture::LayerSpec& layer : spec.layers) layer.sliding_window = window;
}

}  // namespace

architecture::DecoderSpec read_mistral_spec(const io::JsonReader& config) {
  refuse_unsupported(config);
  architecture::DecoderSpec spec;
  spec.family = "mistral";
  read_sizes(config, {.vocab_size = 32000, .num_kv_heads = 8, .max_positions = 131072}, spec);
  spec.activation = read_activation(config, "hidden_act", "silu");
  spec.attention_scale = 1.0 / std::sqrt(static_cast<double>(spec.head_dim));
  spec.tied_head = config.bool_or("tie_word_embeddings", false);
  read_rope(config, spec);
  read_window(config, spec);
  return spec;
}

}  // namespace convoy::families
