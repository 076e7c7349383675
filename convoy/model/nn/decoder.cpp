// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/decoder.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/uniform_noise/uniform_noise.h"
#include "convoy/model/nn/recompute_in_backward.h"

namespace convoy::nn {
namespace {

std::vector<DecoderBlock> make_blocks(const architecture::DecoderSpec& spec,
                                      const ParameterSource& source) {
  std::vector<DecoderBlock> blocks;
  blocks.reserve(spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    blocks.emplace_back(spec, static_cast<int64_t>(i), source);
  }
  return blocks;
}

std::optional<LayerInputs> make_layer_inputs(const architecture::DecoderSpec& spec,
                                             const ParameterSource& source) {
  if (!spec.layer_inputs.are_there()) return std::nullopt;
  return std::make_optional<LayerInputs>(spec, source);
}

std::vector<bool> layers_that_are_read(const architecture::DecoderSpec& spec) {
  std::vector<bool> is_read(spec.layers.size());
  for (const architecture::LayerSpec& layer : spec.layers)
    if (layer.keys_of != architecture::kOwnKeys)
      is_read.at(static_cast<size_t>(layer.keys_of)) = true;
  return is_read;
}

void check_token_ids(const TokenBatch& batch, int64_t vocab_size) {
  const int64_t wrong = batch.lowest_id() < 0 ? batch.lowest_id() : batch.highest_id();
  if (wrong >= 0 && wrong < vocab_size) return;
  throw DataError(
      fmt::format("token id {} is outside the model's vocabulary of {}", wrong, vocab_size),
      {.hint = "use the tokenizer that belongs to the model"});
}

}  // namespace

Decoder::Decoder(architecture::DecoderSpec spec, const ParameterSource& source)
    : spec_(std::move(spec)),
      embedding_VD_(source({"model.embed_tokens.weight", {spec_.vocab_size, spec_.hidden_size}})),
      layer_inputs_(make_layer_inputs(spec_, source)),
      blocks_(make_blocks(spec_, source)),
      is_read_(layers_that_are_read(spec_)),
      final_norm_D_(source({"model.norm.weight", {spec_.hidden_size}})),
      head_("lm_head",
            spec_.tied_head ? embedding_VD_
                            : source({"lm_head.weight", {spec_.vocab_size, spec_.hidden_size}}),
            at::Tensor()) {
  rope_tables_.reserve(spec_.ropes.size());
  for (size_t rope = 0; rope < spec_.ropes.size(); ++rope)
    rope_tables_.emplace_back(spec_.ropes[rope],
                              spec_.head_dim_of_rope(static_cast<int64_t>(rope)));
}

// The weight with which a norm of `size` features only normalises.
at::Tensor Decoder::plain_norm(int64_t size) const {
  const bool adds_one = spec_.norm_order == architecture::NormOrder::ScaleByOnePlusThenCast;
  return at::full({size}, adds_one ? 0 : 1, embedding_VD_.options());
}

at::Tensor Decoder::embed(const at::Tensor& token_ids_T) const {
  const UnitUse use(residency_, kEmbeddingUnit);
  at::Tensor x_TD = at::embedding(embedding_VD_, token_ids_T);
  if (spec_.embedding_norm)
    x_TD = kernels::rms_norm(x_TD, plain_norm(spec_.hidden_size), spec_.norm_epsilon,
                             kernel_of(spec_.norm_order));
  if (spec_.embedding_scale == 1.0) return x_TD;
  // The factor is rounded to the weight dtype first: in bf16, sqrt(hidden) differs from its fp32
  // value.
  return x_TD * at::scalar_tensor(spec_.embedding_scale, x_TD.scalar_type());
}

// The inputs by block, [T, P], or undefined where blocks have no inputs of their own.
std::vector<at::Tensor> Decoder::layer_inputs(const TokenBatch& batch, const at::Tensor& x_TD,
                                              const ForwardOptions& options) const {
  if (!layer_inputs_) return std::vector<at::Tensor>(blocks_.size());
  const UnitUse use(residency_, kLayerInputsUnit);
  return use.leave(layer_inputs_->forward(batch.token_ids_T(), use.enter(x_TD), options.draw_key))
      .unbind(1);
}

// The factors of the queries, [T, 1, 1], or undefined where queries do not grow.
at::Tensor Decoder::query_scale(const at::Tensor& positions_T) const {
  if (spec_.query_growth == 0) return {};
  const auto length = static_cast<double>(spec_.query_growth_positions);
  const at::Tensor passed_T = (positions_T.to(at::kFloat) / length).floor();
  return ((passed_T + 1).log() * spec_.query_growth + 1)
      .to(embedding_VD_.scalar_type())
      .view({-1, 1, 1});
}

// The places of whole rows in the tables, [T].
at::Tensor Decoder::table_positions(const TokenBatch& batch) const {
  const kernels::RowIndex& rows = batch.rows();
  if (first_position(rows.longest()) == 0) return batch.position_ids_T();
  std::vector<int64_t> first_T;
  for (int64_t row = 0; row < rows.num_rows(); ++row)
    first_T.insert(first_T.end(), static_cast<size_t>(rows.length(row)),
                   first_position(rows.length(row)));
  return batch.position_ids_T() + device::to_device(std::span<const int64_t>(first_T), device());
}

// The key of the noise differs from the keys of blocks: adapters mix options.draw_key with words of
// their own.
at::Tensor Decoder::with_noise(const at::Tensor& x_TD, const TokenBatch& batch,
                               const ForwardOptions& options) const {
  if (options.noise_alpha == 0 || !options.draw_key) return x_TD;
  constexpr uint64_t kNoise = 0x6e6f697365;  // "noise"
  const std::array<uint64_t, 2> words = {*options.draw_key, kNoise};
  return kernels::add_row_noise(x_TD, batch.rows(), options.noise_alpha, mix_seed(words));
}

at::Tensor Decoder::hidden_states(const TokenBatch& batch, const ForwardOptions& options) {
  check_token_ids(batch, spec_.vocab_size);
  const at::AutoGradMode gradients(at::GradMode::is_enabled() && options.cache == nullptr);
  BlockBatch shared;
  if (options.cache == nullptr) {
    prepare_positions(batch.last_position() + 1);
    shared.position_ids_T = table_positions(batch);
  } else {
    for (RopeTable& table : rope_tables_) table.ensure(batch.last_position() + 1, device());
    shared.position_ids_T = batch.position_ids_T();
  }
  shared.query_scale_T11 = query_scale(batch.position_ids_T());
  shared.rows = batch.rows();
  shared.draw_key = options.draw_key;
  shared.cache = options.cache;
  shared.attention = attention_;

  std::shared_ptr<InputsOnHost> on_host;
  if (options.kept_inputs == KeptInputs::OnHost && !device().is_cpu())
    on_host = std::make_shared<InputsOnHost>(device());
  Residual states{with_noise(embed(batch.token_ids_T()), batch, options)};
  const std::vector<at::Tensor> inputs = layer_inputs(batch, states.x_TD, options);
  std::vector<KeysAndValues> made(blocks_.size());
  at::Tensor plain_norm_E;
  if (spec_.weightless_head_norms || spec_.value_norm)
    plain_norm_E = plain_norm(spec_.widest_head());
  for (size_t index = 0; index < blocks_.size(); ++index) {
    const int64_t keys_of = spec_.layers[index].keys_of;
    if (plain_norm_E.defined())
      shared.plain_norm_E = plain_norm_E.narrow(0, 0, spec_.head_dim_of(spec_.layers[index]));
    shared.layer_input_TP = inputs[index];
    shared.read = keys_of == architecture::kOwnKeys ? KeysAndValues() : made.at(keys_of);
    shared.made = is_read_[index] ? &made[index] : nullptr;
    states = run_block(index, states, shared, options, on_host);
  }
  const UnitUse use(residency_, norm_unit());
  const at::Tensor norm_TD =
      kernels::add_rms_norm(use.enter(states.x_TD), states.added_TD, final_norm_D_,
                            spec_.norm_epsilon,
                            kernel_of(spec_.final_norm_order.value_or(spec_.norm_order)))
          .norm;
  return use.leave(scaled(norm_TD, spec_.logit_scale));
}

namespace {

// The block as a function of the tensors that backward goes through: hidden states, the layer's
// input, keys and values of another layer. Returns the hidden states, then the keys and values that
// other layers read.
TensorsFunction as_function(const DecoderBlock& block, BlockBatch batch) {
  const bool is_read = batch.made != nullptr;
  batch.layer_input_TP = at::Tensor();
  batch.read = {};
  return [&block, batch, is_read](const std::vector<at::Tensor>& inputs) {
    KeysAndValues made;
    BlockBatch with_inputs = batch;
    with_inputs.layer_input_TP = inputs[1];
    with_inputs.read = {inputs[2], inputs[3]};
    with_inputs.made = is_read ? &made : nullptr;
    std::vector<at::Tensor> outputs{block.forward({inputs[0]}, with_inputs).sum()};
    if (is_read) outputs.insert(outputs.end(), {made.k_TKE, made.v_TKE});
    return outputs;
  };
}

}  // namespace

Residual Decoder::run_block(size_t index, const Residual& input, BlockBatch batch,
                            const ForwardOptions& options,
                            const std::shared_ptr<InputsOnHost>& on_host) const {
  const DecoderBlock& block = blocks_[index];
  const UnitUse use(residency_, block_unit(index));
  if (block.rope() != architecture::kNoRope) {
    const RopeTable& table = rope_tables_[block.rope()];
    batch.cos_PE = table.cos();
    batch.sin_PE = table.sin();
    batch.feature_order = table.order();
  }
  if (!at::GradMode::is_enabled()) return block.forward(input, batch);
  const bool records = input.requires_grad() || block.trains() ||
                       (batch.layer_input_TP.defined() && batch.layer_input_TP.requires_grad());
  std::optional<kernels::RecomputedOutputs> recomputed;
  if (records && options.recompute == Recompute::Selective) recomputed.emplace();
  const bool recomputes = records && options.recompute == Recompute::Blocks;
  if (residency_ == nullptr && !recomputes) return block.forward(input, batch);
  // Backward sees one input and one output of a unit, whether the unit is recomputed or not.
  const at::Tensor x_TD = use.enter(input.sum());
  if (!recomputes) return {use.leave(block.forward({x_TD}, batch).sum())};
  const std::vector<at::Tensor> outputs =
      recompute_in_backward({x_TD, batch.layer_input_TP, batch.read.k_TKE, batch.read.v_TKE},
                            as_function(block, batch), on_host);
  if (batch.made != nullptr) *batch.made = {outputs[1], outputs[2]};
  return {use.leave(outputs[0])};
}

std::vector<NamedTensor> Decoder::parameters() {
  std::vector<NamedTensor> listed{{"model.embed_tokens.weight", embedding_VD_}};
  const auto add_linear = [&](Linear& linear) {
    for (NamedTensor& part : linear.parts()) listed.push_back(std::move(part));
  };
  const auto add = [&](const std::string& name, at::Tensor& weight) {
    listed.push_back({name, weight});
  };
  if (layer_inputs_) layer_inputs_->visit(add_linear, add);
  for (DecoderBlock& block : blocks_) block.visit(add_linear, add);
  listed.push_back({"model.norm.weight", final_norm_D_});
  if (!spec_.tied_head) add_linear(head_);
  return listed;
}

std::vector<Unit> Decoder::units() {
  const auto add = [](Unit& unit, const std::string& name, const at::Tensor& value) {
    (value.requires_grad() ? unit.trained : unit.frozen).push_back({name, value});
  };
  const auto add_linear = [&](Unit& unit, Linear& linear) {
    for (const NamedTensor& part : linear.parts()) add(unit, part.name, part.value);
    for (const NamedTensor& leaf : linear.adapter_leaves()) add(unit, leaf.name, leaf.value);
    unit.linears.push_back(&linear);
  };
  std::vector<Unit> units{{.name = "model.embed_tokens"}};
  add(units.back(), "model.embed_tokens.weight", embedding_VD_);
  if (spec_.tied_head) units.back().linears.push_back(&head_);
  const auto add_linear_here = [&](Linear& linear) { add_linear(units.back(), linear); };
  const auto add_here = [&](const std::string& name, at::Tensor& weight) {
    add(units.back(), name, weight);
  };
  if (layer_inputs_) {
    units.push_back({.name = "model.embed_tokens_per_layer"});
    layer_inputs_->visit(add_linear_here, add_here);
  }
  for (size_t index = 0; index < blocks_.size(); ++index) {
    units.push_back({.name = fmt::format("model.layers.{}", index)});
    blocks_[index].visit(add_linear_here, add_here);
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
  if (layer_inputs_) linears.push_back(&layer_inputs_->projection());
  for (DecoderBlock& block : blocks_) {
    block.visit([&](Linear& linear) { linears.push_back(&linear); },
                [](const std::string&, at::Tensor&) {});
  }
  return linears;
}

// Does nothing on CPUs, where separate products take no longer: no kernels are started, and x stays
// in the cache.
void Decoder::join_projections() {
  CONVOY_INVARIANT(residency_ == nullptr, "projections are joined before a model is sharded");
  if (device().is_cpu()) return;
  for (DecoderBlock& block : blocks_) block.join_projections();
  // LibTorch would keep the memory of the parts in pieces that are too small for later parts.
  if (device().is_cuda()) at::getDeviceAllocator(device().type())->emptyCache();
}

// If a rotation has two rules, all layers share it.
int64_t Decoder::first_position(int64_t row_tokens) const {
  return rope_tables_.empty() ? 0 : rope_tables_.front().first_position(row_tokens);
}

void Decoder::prepare_positions(int64_t num_positions) {
  for (RopeTable& table : rope_tables_)
    table.ensure(table.first_position(num_positions) + num_positions, device());
}

void Decoder::quantize_blocks(const kernels::IntegerFormat& format) {
  if (layer_inputs_) layer_inputs_->quantize(format);
  for (DecoderBlock& block : blocks_) block.quantize(format);
}

void Decoder::set_requires_grad(bool requires_grad) {
  for (NamedTensor& parameter : parameters()) parameter.value.requires_grad_(requires_grad);
  for (Linear* linear : block_linears()) linear->weight_changed();
  head_.weight_changed();
}

int64_t Decoder::matmul_parameters() const {
  int64_t weights = spec_.hidden_size * spec_.vocab_size;
  for (const architecture::ParameterDeclaration& parameter :
       architecture::declare_parameters(spec_))
    if (architecture::is_map_of_blocks(parameter))
      weights += parameter.shape[0] * parameter.shape[1];
  return weights;
}

KvGeometry Decoder::kv_geometry() const {
  KvGeometry geometry{.num_kv_heads = spec_.num_kv_heads,
                      .head_dim = spec_.head_dim,
                      .windows = {},
                      .delta_net = spec_.delta_net,
                      .options = embedding_VD_.options()};
  for (const architecture::LayerSpec& layer : spec_.layers) {
    const auto index = static_cast<int64_t>(geometry.windows.size());
    geometry.windows.push_back(
        layer.mixer == architecture::TokenMixer::GatedDeltaNet ? kHasState : layer.sliding_window);
    geometry.heads.push_back({spec_.kv_heads_of(layer), spec_.head_dim_of(layer)});
    geometry.keys_of.push_back(layer.keys_of == architecture::kOwnKeys ? index : layer.keys_of);
  }
  return geometry;
}

}  // namespace convoy::nn
