// SPDX-License-Identifier: Apache-2.0
#include "convoy/nn/decoder.h"

#include <algorithm>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/nn/recompute.h"

namespace convoy::nn {
namespace {

std::vector<DecoderBlock> make_blocks(const DecoderSpec& spec, const ParameterSource& source) {
  std::vector<DecoderBlock> blocks;
  blocks.reserve(spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    blocks.emplace_back(spec, static_cast<int64_t>(i), source);
  }
  return blocks;
}

void check_token_ids(const TokenBatch& batch, int64_t vocab_size) {
  const int64_t wrong = batch.lowest_id() < 0 ? batch.lowest_id() : batch.highest_id();
  if (wrong >= 0 && wrong < vocab_size) return;
  throw DataError(
      fmt::format("token id {} is outside the model's vocabulary of {}", wrong, vocab_size),
      {.hint = "use the tokenizer that belongs to the model"});
}

}  // namespace

std::vector<ParameterDeclaration> declare_parameters(const DecoderSpec& spec) {
  // What a decoder asks for is what it declares: build one of empty tensors and write down the questions.
  std::vector<ParameterDeclaration> declared;
  const Decoder probe(spec, [&](const ParameterDeclaration& parameter) {
    declared.push_back(parameter);
    return at::empty(parameter.shape, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
  });
  return declared;
}

Decoder::Decoder(DecoderSpec spec, const ParameterSource& source)
    : spec_(std::move(spec)),
      embedding_VD_(source({"model.embed_tokens.weight", {spec_.vocab_size, spec_.hidden_size}})),
      blocks_(make_blocks(spec_, source)),
      final_norm_D_(source({"model.norm.weight", {spec_.hidden_size}})),
      head_("lm_head",
            spec_.tied_head ? embedding_VD_
                            : source({"lm_head.weight", {spec_.vocab_size, spec_.hidden_size}}),
            at::Tensor()) {
  rope_tables_.reserve(spec_.ropes.size());
  for (const RopeSpec& rope : spec_.ropes) rope_tables_.emplace_back(rope, spec_.head_dim);
}

at::Tensor Decoder::embed(const at::Tensor& token_ids_T) const {
  const UnitUse use(residency_, kEmbeddingUnit);
  at::Tensor x_TD = at::embedding(embedding_VD_, token_ids_T);
  if (spec_.embedding_scale == 1.0) return x_TD;
  // The factor is rounded to the weight dtype first: in bf16, sqrt(hidden) differs from its fp32 value.
  return x_TD * at::scalar_tensor(spec_.embedding_scale, x_TD.scalar_type());
}

at::Tensor Decoder::hidden_states(const TokenBatch& batch, const ForwardOptions& options) {
  check_token_ids(batch, spec_.vocab_size);
  const at::AutoGradMode gradients(at::GradMode::is_enabled() && options.cache == nullptr);
  for (RopeTable& table : rope_tables_) table.ensure(batch.last_position() + 1, device());

  BlockBatch shared;
  shared.position_ids_T = batch.position_ids_T();
  shared.rows = batch.rows();
  shared.draw_key = options.draw_key;
  shared.cache = options.cache;

  at::Tensor x_TD = embed(batch.token_ids_T());
  for (size_t index = 0; index < blocks_.size(); ++index)
    x_TD = run_block(index, x_TD, shared, options);
  const UnitUse use(residency_, norm_unit());
  return use.leave(
      kernels::rms_norm(use.enter(x_TD), final_norm_D_, spec_.norm_epsilon, spec_.norm_order));
}

at::Tensor Decoder::run_block(size_t index, const at::Tensor& input_TD, BlockBatch batch,
                              const ForwardOptions& options) const {
  const DecoderBlock& block = blocks_[index];
  const UnitUse use(residency_, block_unit(index));
  const at::Tensor x_TD = use.enter(input_TD);
  const RopeTable& table = rope_tables_[block.rope()];
  batch.cos_PE = table.cos();
  batch.sin_PE = table.sin();
  const bool wants_gradients =
      at::GradMode::is_enabled() && (x_TD.requires_grad() || block.trains());
  if (!options.recompute_blocks || !wants_gradients) return use.leave(block.forward(x_TD, batch));
  return use.leave(recompute_in_backward(
      x_TD, [&block, batch](const at::Tensor& x) { return block.forward(x, batch); }));
}

std::vector<NamedTensor> Decoder::parameters() {
  std::vector<NamedTensor> listed{{"model.embed_tokens.weight", embedding_VD_}};
  const auto add_linear = [&](Linear& linear) {
    listed.push_back({linear.name() + ".weight", linear.weight()});
    if (linear.bias().defined()) listed.push_back({linear.name() + ".bias", linear.bias()});
  };
  for (DecoderBlock& block : blocks_) {
    block.visit(add_linear, [&](const std::string& name, at::Tensor& weight) {
      listed.push_back({name, weight});
    });
  }
  listed.push_back({"model.norm.weight", final_norm_D_});
  if (!spec_.tied_head) add_linear(head_);
  return listed;
}

std::vector<Unit> Decoder::units() {
  const auto add = [](Unit& unit, const std::string& name, const at::Tensor& value) {
    (value.requires_grad() ? unit.trained : unit.frozen).push_back({name, value});
  };
  const auto add_linear = [&](Unit& unit, Linear& linear) {
    add(unit, linear.name() + ".weight", linear.weight());
    if (linear.bias().defined()) add(unit, linear.name() + ".bias", linear.bias());
    for (const NamedTensor& leaf : linear.adapter_leaves()) add(unit, leaf.name, leaf.value);
    unit.linears.push_back(&linear);
  };
  std::vector<Unit> units{{.name = "model.embed_tokens"}};
  add(units.back(), "model.embed_tokens.weight", embedding_VD_);
  if (spec_.tied_head) units.back().linears.push_back(&head_);
  for (size_t index = 0; index < blocks_.size(); ++index) {
    units.push_back({.name = fmt::format("model.layers.{}", index)});
    blocks_[index].visit(
        [&](Linear& linear) { add_linear(units.back(), linear); },
        [&](const std::string& name, at::Tensor& weight) { add(units.back(), name, weight); });
  }
  units.push_back({.name = "model.norm"});
  add(units.back(), "model.norm.weight", final_norm_D_);
  if (!spec_.tied_head) {
    units.push_back({.name = "lm_head"});
    add_linear(units.back(), head_);
  }
  return units;
}

std::vector<Linear*> Decoder::block_linears() {
  std::vector<Linear*> linears;
  for (DecoderBlock& block : blocks_) {
    block.visit([&](Linear& linear) { linears.push_back(&linear); },
                [](const std::string&, at::Tensor&) {});
  }
  return linears;
}

void Decoder::set_requires_grad(bool requires_grad) {
  for (NamedTensor& parameter : parameters()) parameter.value.requires_grad_(requires_grad);
  for (Linear* linear : block_linears()) linear->weight_changed();
  head_.weight_changed();
}

int64_t Decoder::matmul_parameters() const {
  const int64_t attention =
      spec_.hidden_size * spec_.head_dim * (2 * spec_.num_heads + 2 * spec_.num_kv_heads);
  const int64_t ffn = 3 * spec_.hidden_size * spec_.ffn_size;
  return num_layers() * (attention + ffn) + spec_.hidden_size * spec_.vocab_size;
}

KvGeometry Decoder::kv_geometry() const {
  KvGeometry geometry{.num_kv_heads = spec_.num_kv_heads,
                      .head_dim = spec_.head_dim,
                      .windows = {},
                      .options = embedding_VD_.options()};
  for (const LayerSpec& layer : spec_.layers) geometry.windows.push_back(layer.sliding_window);
  return geometry;
}

}  // namespace convoy::nn
