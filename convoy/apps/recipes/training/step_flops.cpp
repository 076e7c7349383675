// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/step_flops.h"

#include <fmt/format.h>

#include "convoy/model/nn/kv_cache.h"
#include "convoy/model/sizing/known_peak.h"

namespace convoy::recipes {

namespace {

bool reads_first_input(const nn::Linear& map) {
  const std::string& name = map.name();
  if (name == "model.per_layer_model_projection") return true;
  if (!name.starts_with("model.layers.0.")) return false;
  for (const char* end : {".q_proj", ".k_proj", ".v_proj", ".qkv_proj"})
    if (name.ends_with(end)) return true;
  return name.find(".in_proj_") != std::string::npos;
}

}  // namespace

sizing::AttentionShape attention_shape(const nn::CausalLm& model) {
  const nn::KvGeometry kv = model.kv_geometry();
  sizing::AttentionShape shape{.width = model.attention_width()};
  const int64_t heads = kv.head_dim > 0 ? shape.width / kv.head_dim : 0;
  for (int64_t layer = 0; layer < std::ssize(kv.windows); ++layer) {
    const int64_t window = kv.windows[static_cast<size_t>(layer)];
    if (window == nn::kHasState) {
      shape.recurrent += sizing::recurrent_elements(kv.delta_net);
      continue;
    }
    shape.windows.push_back(window);
    shape.widths.push_back(heads * kv.heads_of(layer).head_dim);
  }
  return shape;
}

train::StepFlops step_flops_of(nn::CausalLm& model, const adapters::LoraModel* lora) {
  sizing::ProductWeights weights;
  weights.head = model.hidden_size() * model.vocab_size();
  weights.blocks = model.matmul_parameters() - weights.head;
  if (lora == nullptr) {
    weights.trained_blocks = weights.blocks;
    weights.trains_head = true;
  } else {
    for (const nn::Linear* map : model.block_linears())
      if (reads_first_input(*map))
        weights.without_input_gradient += map->in_features() * map->out_features();
    for (const nn::NamedTensor& parameter : lora->parameters())
      // DoRA's magnitudes are no matrices.
      if (parameter.value.dim() == 2) weights.adapters += parameter.value.numel();
  }
  const sizing::AttentionShape attention = attention_shape(model);
  return [weights, attention](const std::vector<int64_t>& row_tokens, int64_t supervised_tokens) {
    return sizing::step_flops(weights, attention, row_tokens, supervised_tokens);
  };
}

double known_peak_of_rank(const std::string& device_kind, const std::string& dtype,
                          int local_world) {
  const double peak =
      sizing::known_peak(sizing::peaks_file(), sizing::peak_owner(device_kind, dtype)).value_or(0);
  return device_kind == "cpu" ? peak / local_world : peak;
}

std::string peak_share_text(double share, double peak_flops, const std::string& dtype) {
  const bool large = peak_flops >= 1e13;
  return fmt::format("{:.0f} % of the measured peak ({:.0f} {}FLOP/s in {}; MFU){}", 100 * share,
                     peak_flops / (large ? 1e12 : 1e9), large ? "T" : "G", dtype,
                     share > 1 ? ": the machine was busy when it was measured, so run convoy bench "
                                 "peak again while nothing else runs"
                               : "");
}

}  // namespace convoy::recipes
