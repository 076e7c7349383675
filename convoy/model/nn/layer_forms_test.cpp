// SPDX-License-Identifier: Apache-2.0
//
// Tests a decoder whose layers differ, as Gemma 4's do: in heads, in feed-forwards, and in whether
// they compute keys and values. It has per-layer inputs and scalars.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "convoy/model/nn/decoder.h"
#include "convoy/model/nn/kv_cache.h"
#include "convoy/model/nn/rope_table.h"

namespace convoy::nn {
namespace {

architecture::DecoderSpec spec_of_many_forms() {
  return {.family = "test",
          .vocab_size = 11,
          .hidden_size = 8,
          .num_heads = 2,
          .num_kv_heads = 1,
          .head_dim = 4,
          .ffn_size = 12,
          .max_positions = 64,
          .query_key_norm = true,
          .value_norm = true,
          .norms = architecture::kNormsAround,
          .layer_scalars = true,
          .tied_head = true,
          .ropes = {{.kind = architecture::RopeKind::Proportional,
                     .theta = 50.0,
                     .rotated_features = 4},
                    {.theta = 20.0}},
          .layers = {{.rope = 1, .sliding_window = 3},
                     {.head_dim = 6, .num_kv_heads = 2, .keys_are_values = true},
                     {.ffn_size = 20, .keys_of = 0, .rope = 1, .sliding_window = 3},
                     {.head_dim = 6, .num_kv_heads = 2, .keys_of = 1}},
          .layer_inputs = {.width = 5, .vocab_size = 11}};
}

Decoder decoder_of_many_forms() {
  at::manual_seed(5);
  return Decoder(spec_of_many_forms(), [](const architecture::ParameterDeclaration& p) {
    return p.shape.size() == 1 ? at::randn(p.shape) * 0.2 + 1 : at::randn(p.shape) * 0.4;
  });
}

TokenBatch rows_of(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<int64_t> ids, positions, starts = {0};
  for (const std::vector<int64_t>& row : rows) {
    ids.insert(ids.end(), row.begin(), row.end());
    for (int64_t position = 0; position < std::ssize(row); ++position)
      positions.push_back(position);
    starts.push_back(std::ssize(ids));
  }
  return {ids, positions, starts};
}

const std::vector<int64_t> kLong = {1, 5, 9, 2, 2, 7, 10, 3};
const std::vector<int64_t> kShort = {4, 8, 6};

std::map<std::string, at::Tensor> gradients_of(Decoder& model, Recompute recompute) {
  for (NamedTensor& parameter : model.parameters()) parameter.value.mutable_grad() = at::Tensor();
  model.hidden_states(rows_of({kLong, kShort}), {.recompute = recompute}).square().sum().backward();
  std::map<std::string, at::Tensor> found;
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.value.grad().defined()) found[parameter.name] = parameter.value.grad().clone();
  return found;
}

void expect_equal(const std::map<std::string, at::Tensor>& found,
                  const std::map<std::string, at::Tensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, value] : wanted) EXPECT_TRUE(found.at(name).equal(value)) << name;
}

TEST(LayersThatDiffer, AskForWhatTheirSpecDeclares) {
  std::vector<architecture::ParameterDeclaration> asked;
  Decoder model(spec_of_many_forms(), [&](const architecture::ParameterDeclaration& parameter) {
    asked.push_back(parameter);
    return at::empty(parameter.shape);
  });
  EXPECT_EQ(asked, architecture::declare_parameters(spec_of_many_forms()));
  std::vector<std::string> names, declared;
  for (const NamedTensor& parameter : model.parameters()) names.push_back(parameter.name);
  for (const auto& parameter : asked) declared.push_back(parameter.name);
  EXPECT_EQ(names, declared);
  const std::set<std::string> set(names.begin(), names.end());
  EXPECT_TRUE(set.contains("model.layers.0.self_attn.v_proj.weight"));
  EXPECT_FALSE(set.contains("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_FALSE(set.contains("model.layers.2.self_attn.k_norm.weight"));
  EXPECT_TRUE(
      architecture::is_unread(spec_of_many_forms(), "model.layers.2.self_attn.k_norm.weight"));
  EXPECT_FALSE(
      architecture::is_unread(spec_of_many_forms(), "model.layers.1.self_attn.v_proj.weight"));
}

TEST(LayersThatDiffer, PackedRowsHaveTheBitsOfRowsAlone) {
  Decoder model = decoder_of_many_forms();
  const at::NoGradGuard no_gradients;
  const at::Tensor packed_TD = model.hidden_states(rows_of({kLong, kShort}), {});
  const at::Tensor alone_TD = at::cat(
      {model.hidden_states(rows_of({kLong}), {}), model.hidden_states(rows_of({kShort}), {})});
  EXPECT_TRUE(packed_TD.equal(alone_TD));
}

// The keys and values that other layers read are outputs of a recomputed block, and the per-layer
// inputs are inputs of it.
TEST(LayersThatDiffer, RecomputationKeepsTheBitsOfGradients) {
  Decoder model = decoder_of_many_forms();
  model.set_requires_grad(true);
  const auto wanted = gradients_of(model, Recompute::Nothing);
  EXPECT_EQ(wanted.size(), model.parameters().size());
  expect_equal(gradients_of(model, Recompute::Blocks), wanted);
  expect_equal(gradients_of(model, Recompute::Selective), wanted);
}

// The only gradients come through the per-layer inputs, or through keys that a later layer reads.
TEST(LayersThatDiffer, RecomputationReachesAllThatTrains) {
  for (const std::string trained :
       {"model.per_layer_model_projection.weight", "model.layers.0.self_attn.k_proj.weight"}) {
    Decoder model = decoder_of_many_forms();
    for (NamedTensor& parameter : model.parameters())
      parameter.value.requires_grad_(parameter.name == trained);
    const auto wanted = gradients_of(model, Recompute::Nothing);
    ASSERT_EQ(wanted.size(), 1u) << trained;
    EXPECT_GT(wanted.at(trained).abs().max().item<double>(), 0) << trained;
    expect_equal(gradients_of(model, Recompute::Blocks), wanted);
  }
}

TEST(LayersThatDiffer, ScalarsHaveAGradientOfZero) {
  Decoder model = decoder_of_many_forms();
  model.set_requires_grad(true);
  for (const auto& [name, gradient] : gradients_of(model, Recompute::Nothing))
    EXPECT_EQ(name.ends_with("layer_scalar"), gradient.abs().max().item<double>() == 0) << name;
}

TEST(LayersThatDiffer, StoreKeysOnlyWhereTheyMakeThem) {
  const KvGeometry geometry = decoder_of_many_forms().kv_geometry();
  const std::vector<KvLayerGroup> groups = layer_groups(geometry);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].layers, std::vector<int64_t>{0});
  EXPECT_EQ(groups[0].heads, (KvHeads{1, 4}));
  EXPECT_EQ(groups[1].layers, std::vector<int64_t>{1});
  EXPECT_EQ(groups[1].heads, (KvHeads{2, 6}));
  EXPECT_GT(kv_block_bytes(geometry, groups[1], 32, kernels::CacheElement::Model),
            kv_block_bytes(geometry, groups[0], 32, kernels::CacheElement::Model));
}

TEST(Rope, AProportionalRotationLeavesPairsOfAngleZero) {
  const architecture::RopeSpec rope{.kind = architecture::RopeKind::Proportional,
                                    .theta = 16.0,
                                    .factor = 2.0,
                                    .rotated_features = 4};
  EXPECT_TRUE(inverse_frequencies(rope, 8).allclose(at::tensor({0.5F, 0.25F, 0.0F, 0.0F})));
  EXPECT_FALSE(feature_order(rope, 8).from_E.defined());
  RopeTable table(rope, 8);
  table.ensure(3);
  EXPECT_EQ(table.cos().size(1), 4);
  EXPECT_EQ(table.sin()[2][3].item<double>(), 0);
}

}  // namespace
}  // namespace convoy::nn
