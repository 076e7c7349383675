// SPDX-License-Identifier: Apache-2.0
//
// A tiny model for tests of adapters: two blocks, random weights that are the same every time.
#pragma once

#include <memory>
#include <string>

#include "convoy/model/nn/decoder.h"

namespace convoy::testing {

inline std::unique_ptr<nn::Decoder> tiny_decoder(bool tied_head = false,
                                                 const std::string& text_module = {}) {
  at::manual_seed(3);
  architecture::DecoderSpec spec{.family = "test",
                                 .text_module = text_module,
                                 .vocab_size = 13,
                                 .hidden_size = 8,
                                 .num_heads = 2,
                                 .num_kv_heads = 1,
                                 .head_dim = 4,
                                 .ffn_size = 12,
                                 .max_positions = 64,
                                 .attention_scale = 0.5,
                                 .tied_head = tied_head,
                                 .ropes = {architecture::RopeSpec{}},
                                 .layers = {architecture::LayerSpec{}, architecture::LayerSpec{}}};
  return std::make_unique<nn::Decoder>(std::move(spec),
                                       [](const architecture::ParameterDeclaration& declared) {
                                         return at::randn(declared.shape) * 0.3;
                                       });
}

inline nn::Linear& linear_of(nn::CausalLm& model, const std::string& name) {
  for (nn::Linear* linear : model.block_linears())
    if (linear->name() == name) return *linear;
  throw std::runtime_error("no linear " + name);
}

inline at::Tensor logits_of(nn::CausalLm& model) {
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> ids = {1, 5, 10, 2, 7};
  const std::vector<int64_t> positions = {0, 1, 2, 0, 1};
  const nn::TokenBatch batch(ids, positions, {0, 3, 5});
  return model.head().forward(model.hidden_states(batch, {}));
}

}  // namespace convoy::testing
