// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/dropout/dropout.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/kernels/rope/rope.h"
#include "convoy/model/nn/decoder.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/model/nn/kv_cache.h"
#include "convoy/model/nn/linear.h"
#include "convoy/model/nn/recompute_in_backward.h"
#include "convoy/model/nn/rope_table.h"

namespace convoy::nn {
namespace {

architecture::DecoderSpec small_spec() {
  return {.family = "test",
          .vocab_size = 11,
          .hidden_size = 8,
          .num_heads = 2,
          .num_kv_heads = 1,
          .head_dim = 4,
          .ffn_size = 12,
          .max_positions = 64,
          .attention_scale = 0.5,
          .tied_head = true,
          .ropes = {architecture::RopeSpec{}},
          .layers = {architecture::LayerSpec{}, architecture::LayerSpec{}}};
}

Decoder small_decoder() {
  at::manual_seed(3);
  return Decoder(small_spec(), [](const architecture::ParameterDeclaration& p) {
    return at::randn(p.shape) * 0.3;
  });
}

TokenBatch small_batch(int64_t third_id = 10) {
  const std::vector<int64_t> ids = {1, 5, third_id, 2};
  const std::vector<int64_t> positions = {0, 1, 2, 0};
  return TokenBatch(ids, positions, {0, 3, 4});
}

TEST(Decoder, AsksForWhatItsSpecDeclares) {
  architecture::DecoderSpec spec = small_spec();
  for (const bool all : {false, true}) {
    spec.query_key_norm = spec.qkv_bias = all;
    spec.norms = all ? architecture::kNormsAround : architecture::kNormsBefore;
    spec.attention_output_bias = spec.ffn_bias = all;
    spec.fused_qkv = spec.fused_gate_up = all;
    spec.tied_head = !all;
    spec.attention_gate = spec.gate_map = !all;
    std::vector<architecture::ParameterDeclaration> asked;
    const Decoder decoder(spec, [&](const architecture::ParameterDeclaration& parameter) {
      asked.push_back(parameter);
      return at::empty(parameter.shape);
    });
    EXPECT_EQ(asked, architecture::declare_parameters(spec));
  }
}

// Maps that are stored as one matrix give the same hidden states and gradients as separate maps,
// also quantised.
TEST(Decoder, FusedMapsAreTheirRows) {
  architecture::DecoderSpec apart = small_spec();
  apart.qkv_bias = true;
  architecture::DecoderSpec fused = apart;
  fused.fused_qkv = fused.fused_gate_up = true;
  at::manual_seed(6);
  std::map<std::string, at::Tensor> values;
  Decoder one(apart, [&](const architecture::ParameterDeclaration& p) {
    return values[p.name] = at::randn(p.shape) * 0.3;
  });
  const auto rows_of = [&](std::string name, const std::string& whole,
                           const std::vector<std::string>& parts) {
    const size_t at = name.find(whole);
    std::vector<at::Tensor> rows;
    for (const std::string& part : parts) {
      std::string own = name;
      rows.push_back(values.at(own.replace(at, whole.size(), part)));
    }
    return at::cat(rows);
  };
  Decoder other(fused, [&](const architecture::ParameterDeclaration& p) {
    if (p.name.find("qkv_proj") != std::string::npos)
      return rows_of(p.name, "qkv_proj", {"q_proj", "k_proj", "v_proj"});
    if (p.name.find("gate_up_proj") != std::string::npos)
      return rows_of(p.name, "gate_up_proj", {"gate_proj", "up_proj"});
    return values.at(p.name).clone();
  });
  const auto states_of = [](Decoder& model) { return model.hidden_states(small_batch(), {}); };
  for (Decoder* model : {&one, &other}) model->set_requires_grad(true);
  const at::Tensor wanted = states_of(one), found = states_of(other);
  EXPECT_TRUE(at::allclose(found, wanted, 1e-5, 1e-6));
  wanted.square().sum().backward();
  found.square().sum().backward();
  const auto gradient = [](Decoder& model, const std::string& name) {
    for (const NamedTensor& parameter : model.parameters())
      if (parameter.name == name) return parameter.value.grad();
    return at::Tensor();
  };
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    EXPECT_TRUE(at::allclose(gradient(other, layer + "self_attn.qkv_proj.weight"),
                             at::cat({gradient(one, layer + "self_attn.q_proj.weight"),
                                      gradient(one, layer + "self_attn.k_proj.weight"),
                                      gradient(one, layer + "self_attn.v_proj.weight")}),
                             1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(gradient(other, layer + "mlp.gate_up_proj.weight"),
                             at::cat({gradient(one, layer + "mlp.gate_proj.weight"),
                                      gradient(one, layer + "mlp.up_proj.weight")}),
                             1e-4, 1e-5));
  }
  const at::NoGradGuard no_gradients;
  for (Decoder* model : {&one, &other}) {
    model->set_requires_grad(false);
    model->quantize_blocks({});
  }
  EXPECT_TRUE(at::allclose(states_of(other), states_of(one), 1e-4, 1e-5));
}

// A gate with a matrix of its own gives the same result as a gate whose rows alternate with the
// queries' rows.
TEST(Decoder, AGateGatesAlikeInEitherMap) {
  architecture::DecoderSpec joint = small_spec();
  joint.attention_gate = true;
  architecture::DecoderSpec apart = joint;
  apart.gate_map = true;
  at::manual_seed(8);
  std::map<std::string, at::Tensor> values;
  Decoder own_map(apart, [&](const architecture::ParameterDeclaration& p) {
    return values[p.name] = at::randn(p.shape) * 0.3;
  });
  Decoder in_queries(joint, [&](const architecture::ParameterDeclaration& p) {
    const size_t end = p.name.find("q_proj");
    if (end == std::string::npos) return values.at(p.name).clone();
    const auto by_head = [&](const std::string& name) {
      return values.at(name).view({joint.num_heads, joint.head_dim, joint.hidden_size});
    };
    return at::cat({by_head(p.name), by_head(p.name.substr(0, end) + "gate_proj.weight")}, 1)
        .flatten(0, 1);
  });
  const at::NoGradGuard no_gradients;
  const at::Tensor wanted = in_queries.hidden_states(small_batch(), {});
  EXPECT_TRUE(at::allclose(own_map.hidden_states(small_batch(), {}), wanted, 1e-5, 1e-6));
  own_map.quantize_blocks({});
  in_queries.quantize_blocks({});
  EXPECT_TRUE(at::allclose(own_map.hidden_states(small_batch(), {}),
                           in_queries.hidden_states(small_batch(), {}), 1e-4, 1e-5));
}

// The norm is tested with both orders of cast and scale.
TEST(Decoder, ANormOfHeadsWithoutAWeightIsTheNormUnderAWeightThatChangesNothing) {
  using architecture::NormOrder;
  for (const NormOrder order : {NormOrder::CastThenScale, NormOrder::ScaleByOnePlusThenCast}) {
    architecture::DecoderSpec with = small_spec();
    with.query_key_norm = true;
    with.norm_order = order;
    architecture::DecoderSpec without = with;
    without.weightless_head_norms = true;
    at::manual_seed(9);
    std::map<std::string, at::Tensor> values;
    Decoder weightless(without, [&](const architecture::ParameterDeclaration& p) {
      return values[p.name] = at::randn(p.shape) * 0.3;
    });
    Decoder weighted(with, [&](const architecture::ParameterDeclaration& p) {
      const auto found = values.find(p.name);
      if (found != values.end()) return found->second.clone();
      return order == NormOrder::CastThenScale ? at::ones(p.shape) : at::zeros(p.shape);
    });
    EXPECT_EQ(weighted.parameters().size(), weightless.parameters().size() + 4);
    const auto states = [](Decoder& model) { return model.hidden_states(small_batch(), {}); };
    EXPECT_TRUE(states(weightless).equal(states(weighted)));
    for (Decoder* model : {&weightless, &weighted}) {
      model->set_requires_grad(true);
      states(*model).square().sum().backward();
    }
    std::map<std::string, at::Tensor> gradients;
    for (const NamedTensor& parameter : weighted.parameters())
      gradients[parameter.name] = parameter.value.grad();
    for (const NamedTensor& parameter : weightless.parameters())
      EXPECT_TRUE(parameter.value.grad().equal(gradients.at(parameter.name))) << parameter.name;
  }
}

TEST(Decoder, NormsLieWhereTheSpecNamesThem) {
  architecture::DecoderSpec spec = small_spec();
  spec.norms = architecture::kNormsAfter;
  spec.query_key_norm = spec.norm_over_heads = true;
  std::map<std::string, std::vector<int64_t>> shapes;
  Decoder decoder(spec, [&](const architecture::ParameterDeclaration& parameter) {
    shapes[parameter.name] = parameter.shape;
    return at::ones(parameter.shape);
  });
  EXPECT_EQ(shapes.at("model.layers.0.self_attn.q_norm.weight"), (std::vector<int64_t>{8}));
  EXPECT_EQ(shapes.at("model.layers.0.self_attn.k_norm.weight"), (std::vector<int64_t>{4}));
  EXPECT_FALSE(shapes.contains("model.layers.0.input_layernorm.weight"));
  EXPECT_TRUE(shapes.contains("model.layers.1.post_feedforward_layernorm.weight"));
  EXPECT_EQ(decoder.parameters().size(), shapes.size());
}

// Without rotation, positions have no effect: only the set of visible keys counts.
TEST(Decoder, AnUnrotatedLayerDoesNotSeePositions) {
  const auto last_logits = [](int64_t rope, std::vector<int64_t> positions) {
    architecture::DecoderSpec spec = small_spec();
    for (architecture::LayerSpec& layer : spec.layers) layer.rope = rope;
    at::manual_seed(3);
    Decoder model(
        spec, [](const architecture::ParameterDeclaration& p) { return at::randn(p.shape) * 0.3; });
    const at::NoGradGuard no_gradients;
    const std::vector<int64_t> ids = {1, 5, 2};
    return model.hidden_states(TokenBatch(ids, positions, {0, 3}), {})[2];
  };
  const auto none = architecture::kNoRope;
  EXPECT_TRUE(at::equal(last_logits(none, {0, 1, 2}), last_logits(none, {0, 9, 30})));
  EXPECT_FALSE(at::allclose(last_logits(0, {0, 1, 2}), last_logits(0, {0, 9, 30})));
}

Decoder capped_decoder(double score_cap, double logit_cap) {
  architecture::DecoderSpec spec = small_spec();
  spec.attention_scale = 4;
  spec.score_cap = score_cap;
  spec.logit_cap = logit_cap;
  at::manual_seed(3);
  return Decoder(spec,
                 [](const architecture::ParameterDeclaration& p) { return at::randn(p.shape); });
}

TEST(Decoder, ASoftCapOnScoresIsThatOfItsAttention) {
  const auto states = [](double score_cap) {
    return capped_decoder(score_cap, 0).hidden_states(small_batch(), {});
  };
  const at::Tensor free = states(0), capped = states(0.5);
  EXPECT_FALSE(at::allclose(capped, free, 1e-3, 1e-3));
  EXPECT_TRUE(at::allclose(states(1e6), free, 1e-4, 1e-4));
  // The attention of a one-token row has a single weight, which is 1.
  EXPECT_TRUE(at::allclose(capped[3], free[3]));
}

// The loss, the figures of the labels and the gradients are computed from the capped logits.
TEST(HeadLoss, IsThatOfLogitsUnderTheModelsSoftCap) {
  constexpr double kCap = 0.8;
  Decoder model = capped_decoder(0, kCap);
  const at::Tensor hidden = at::randn({6, 8});
  const std::vector<int64_t> labels = {3, 10, kernels::kIgnoredLabel, 0, 7, 3};
  const kernels::LabelledTokens labelled(labels);
  const at::Tensor weight = model.head().weight();
  const auto logits_of = [&](const at::Tensor& states) {
    return (at::matmul(states, weight.t().to(states.scalar_type())) / kCap).tanh() * kCap;
  };
  const auto losses_of = [&](const at::Tensor& states) {
    return at::cross_entropy_loss(logits_of(states), at::tensor(labels), {}, at::Reduction::None,
                                  kernels::kIgnoredLabel);
  };
  EXPECT_TRUE(at::allclose(head_logits(model, hidden), logits_of(hidden), 1e-5, 1e-6));
  EXPECT_LE(head_logits(model, hidden * 100).abs().max().item<double>(), kCap + 1e-6);
  const at::Tensor ours = hidden.clone().requires_grad_(true);
  const at::Tensor theirs = hidden.to(at::kDouble).requires_grad_(true);
  const at::Tensor loss = head_loss(model, ours, labelled);
  const at::Tensor wanted = losses_of(theirs).sum();
  EXPECT_NEAR(loss.item<double>(), wanted.item<double>(), 1e-4);
  loss.backward();
  wanted.backward();
  EXPECT_TRUE(at::allclose(ours.grad().to(at::kDouble), theirs.grad(), 1e-4, 1e-5));
  const kernels::TokenLosses tokens = head_token_losses(model, hidden, labelled);
  EXPECT_TRUE(at::allclose(tokens.nll_T, losses_of(hidden), 1e-5, 1e-5));
}

TEST(RopeTable, GrowingKeepsTheAngles) {
  RopeTable table({.kind = architecture::RopeKind::Linear, .theta = 100.0, .factor = 2.0}, 6);
  table.ensure(10);
  const at::Tensor before = table.cos().clone();
  table.ensure(5000);
  ASSERT_GE(table.cos().size(0), 5000);
  EXPECT_TRUE(at::equal(table.cos().narrow(0, 0, before.size(0)), before));
  const double angle = 4999.0 / 2.0 * std::pow(100.0, -2.0 / 6.0);
  EXPECT_NEAR(table.sin()[4999][1].item<double>(), std::sin(angle), 1e-3);
}

TEST(RopeTable, Llama3BlendsBetweenItsWavelengths) {
  const architecture::RopeSpec plain{.theta = 500000.0};
  architecture::RopeSpec spec = plain;
  spec.kind = architecture::RopeKind::Llama3;
  spec.factor = 8.0;
  const at::Tensor before = inverse_frequencies(plain, 64);
  const at::Tensor ratio = before / inverse_frequencies(spec, 64);
  EXPECT_EQ(ratio[0].item<float>(), 1.0f);           // short wavelengths are unchanged
  EXPECT_NEAR(ratio[31].item<float>(), 8.0f, 1e-5);  // long wavelengths are stretched
  int64_t between = 0;
  for (int64_t i = 0; i < 32; ++i) {
    const auto r = ratio[i].item<float>();
    between += r > 1.001f && r < 7.999f;
  }
  EXPECT_GT(between, 0);
}

// Compares a head of 10 features, 6 of which rotate, with the formula.
TEST(RopeTable, APartOfAHeadRotatesInEitherOrderOfPairs) {
  for (const bool neighbours : {false, true}) {
    const architecture::RopeSpec spec{
        .theta = 50.0, .table_scale = 1.5, .rotated_features = 6, .neighbours = neighbours};
    RopeTable table(spec, 10);
    table.ensure(8);
    at::manual_seed(2);
    const at::Tensor x_THE = at::randn({4, 3, 10}).requires_grad_();
    const at::Tensor positions_T = at::arange(4, at::kLong) * 2;
    const at::Tensor turned =
        kernels::rope(in_order(x_THE, table.order()), table.cos(), table.sin(), positions_T);
    const at::Tensor found = turned.index_select(2, table.order().back_E).detach();
    at::Tensor wanted = x_THE.detach().clone();
    for (int64_t pair = 0; pair < 3; ++pair) {
      const int64_t one = neighbours ? 2 * pair : pair, other = neighbours ? one + 1 : pair + 3;
      const at::Tensor angles =
          positions_T.to(at::kDouble) * std::pow(50.0, -static_cast<double>(pair) / 3.0);
      const at::Tensor cos = (angles.cos() * 1.5).to(at::kFloat).unsqueeze(1),
                       sin = (angles.sin() * 1.5).to(at::kFloat).unsqueeze(1);
      const at::Tensor a = x_THE.detach().select(2, one), b = x_THE.detach().select(2, other);
      wanted.select(2, one).copy_(a * cos - b * sin);
      wanted.select(2, other).copy_(b * cos + a * sin);
    }
    EXPECT_TRUE(at::allclose(found, wanted, 1e-5, 1e-5)) << neighbours;
    // The backward pass returns each feature's gradient to the feature's own place.
    x_THE.mutable_grad() = at::Tensor();
    in_order(x_THE, table.order())
        .index_select(2, table.order().back_E)
        .select(2, 7)
        .sum()
        .backward();
    EXPECT_EQ(x_THE.grad().select(2, 7).sum().item<float>(), 12.0f);
    EXPECT_EQ(x_THE.grad().sum().item<float>(), 12.0f);
  }
  EXPECT_FALSE(feature_order({.rotated_features = 10}, 10).from_E.defined());
}

TEST(RopeTable, LongRopeDividesEachFrequency) {
  const architecture::RopeSpec spec{.kind = architecture::RopeKind::LongRope,
                                    .theta = 100.0,
                                    .divisors = {1.0, 4.0},
                                    .long_divisors = {2.0, 8.0},
                                    .rotated_features = 4};
  const at::Tensor found = inverse_frequencies(spec, 6);
  EXPECT_EQ(found.size(0), 2);
  EXPECT_FLOAT_EQ(found[0].item<float>(), 1.0f);
  EXPECT_FLOAT_EQ(found[1].item<float>(), 0.025f);  // 1 / (4 * 100^(1/2))
}

architecture::DecoderSpec longrope_spec() {
  architecture::DecoderSpec spec = small_spec();
  spec.ropes.front() = {.kind = architecture::RopeKind::LongRope,
                        .theta = 100.0,
                        .original_max_positions = 4,
                        .divisors = {1.0, 4.0},
                        .long_divisors = {2.0, 8.0}};
  return spec;
}

TEST(RopeTable, LongRopesLongerRowsHaveAnglesOfTheirOwn) {
  const architecture::RopeSpec spec = longrope_spec().ropes.front();
  RopeTable table(spec, 4);
  EXPECT_EQ(table.first_position(4), 0);
  EXPECT_EQ(table.first_position(5), 4);
  table.ensure(10);
  EXPECT_FLOAT_EQ(table.sin()[3][0].item<float>(), std::sin(3.0f));
  for (const int64_t position : {0, 3, 5}) {
    const auto at = static_cast<float>(position);
    EXPECT_FLOAT_EQ(table.sin()[4 + position][0].item<float>(), std::sin(at / 2));
    EXPECT_FLOAT_EQ(table.sin()[4 + position][1].item<float>(), std::sin(at / 80));
  }
  const at::Tensor before = table.cos().clone();
  table.ensure(3000);
  EXPECT_TRUE(at::equal(table.cos().narrow(0, 0, before.size(0)), before));
  RopeTable plain(architecture::RopeSpec{}, 4);
  EXPECT_EQ(plain.first_position(1 << 20), 0);
}

// Each row chooses its divisors by its own length: neighbours in a pack have no effect, and a row
// within the original positions equals a row of a model with the short divisors only.
TEST(Decoder, LongRopesRowsDoNotDependOnTheirNeighbours) {
  const auto make = [](const architecture::DecoderSpec& spec) {
    at::manual_seed(3);
    return Decoder(
        spec, [](const architecture::ParameterDeclaration& p) { return at::randn(p.shape) * 0.3; });
  };
  architecture::DecoderSpec all_short = longrope_spec(), all_long = longrope_spec();
  all_short.ropes.front().long_divisors = all_short.ropes.front().divisors;
  all_long.ropes.front().divisors = all_long.ropes.front().long_divisors;
  Decoder model = make(longrope_spec()), of_short = make(all_short), of_long = make(all_long);
  const at::NoGradGuard no_gradients;
  const std::vector<int64_t> ids = {1, 5, 3, 2, 4, 7, 1, 2, 9, 6, 5, 3, 8};
  const std::vector<int64_t> positions = {0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 1, 2};
  const at::Tensor packed_TD = model.hidden_states(TokenBatch(ids, positions, {0, 4, 10, 13}), {});
  const auto alone = [&](Decoder& of, size_t begin, size_t end) {
    const std::span<const int64_t> all(ids), places(positions);
    return of.hidden_states(
        TokenBatch(all.subspan(begin, end - begin), places.subspan(begin, end - begin),
                   {0, static_cast<int64_t>(end - begin)}),
        {});
  };
  for (const auto& [begin, end, of] :
       {std::tuple{0, 4, &of_short}, std::tuple{4, 10, &of_long}, std::tuple{10, 13, &of_short}}) {
    const at::Tensor row_TD = packed_TD.narrow(0, begin, end - begin);
    EXPECT_TRUE(at::equal(row_TD, alone(model, begin, end))) << begin;
    EXPECT_TRUE(at::equal(row_TD, alone(*of, begin, end))) << begin;
  }
  EXPECT_FALSE(at::allclose(alone(model, 4, 10), alone(of_short, 4, 10)));
}

// Rotating pairs of neighbouring features equals rotating pairs half a head apart after the rows
// are permuted accordingly.
TEST(Decoder, PairsOfNeighboursAreThoseOfPermutedRows) {
  architecture::DecoderSpec spec = small_spec();
  spec.query_key_norm = true;
  spec.ropes.front().neighbours = true;
  const at::Tensor order_E = feature_order(spec.ropes.front(), spec.head_dim).from_E;
  const auto states = [&](const architecture::DecoderSpec& of) {
    at::manual_seed(4);
    const bool permutes = !of.ropes.front().neighbours;
    Decoder model(of, [&](const architecture::ParameterDeclaration& p) {
      const at::Tensor value = at::randn(p.shape) * 0.3;
      bool is_of_heads = false;
      for (const char* name : {"q_proj", "k_proj", "q_norm", "k_norm"})
        is_of_heads = is_of_heads || p.name.find(name) != std::string::npos;
      if (!permutes || !is_of_heads) return value;
      return value.view({p.shape[0] / of.head_dim, of.head_dim, -1})
          .index_select(1, order_E)
          .reshape(p.shape);
    });
    const at::NoGradGuard no_gradients;
    return model.hidden_states(small_batch(), {});
  };
  const at::Tensor neighbours = states(spec);
  spec.ropes.front().neighbours = false;
  EXPECT_TRUE(at::allclose(states(spec), neighbours, 1e-5, 1e-6));
}

template <class Function>
at::Tensor recomputed(const at::Tensor& x, const Function& function) {
  return recompute_in_backward({x}, [&function](const std::vector<at::Tensor>& inputs) {
    return std::vector{function(inputs[0])};
  })[0];
}

TEST(Recompute, DropoutAndGradientsAreThoseOfTheFirstRun) {
  at::manual_seed(1);
  const at::Tensor weight = at::randn({5, 5}).requires_grad_(true);
  const at::Tensor x = at::randn({7, 5}).requires_grad_(true);
  const auto function = [&](const at::Tensor& in) {
    return kernels::dropout(in, 0.5, 9).matmul(weight).tanh();
  };
  const auto run = [&](bool recompute) {
    weight.mutable_grad() = at::Tensor();
    x.mutable_grad() = at::Tensor();
    const at::Tensor y = recompute ? recomputed(x, function) : function(x);
    y.square().sum().backward();
    return std::vector<at::Tensor>{y.detach(), x.grad().clone(), weight.grad().clone()};
  };
  const auto direct = run(false);
  const auto again = run(true);
  for (size_t i = 0; i < direct.size(); ++i) EXPECT_TRUE(at::equal(direct[i], again[i])) << i;
}

TEST(Recompute, ReachesLeavesWhenTheInputIsFrozen) {
  const at::Tensor weight = at::ones({2, 2}).requires_grad_(true);
  const at::Tensor x = at::ones({1, 2});
  const auto function = [&](const at::Tensor& in) { return in.matmul(weight); };
  recomputed(x, function).sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), at::ones({2, 2})));
}

TEST(KvCache, LayersAreGroupedByWhatTheySee) {
  const KvGeometry geometry{.num_kv_heads = 2,
                            .head_dim = 8,
                            .windows = {16, 0, 16, 4},
                            .options = at::TensorOptions().dtype(at::kFloat)};
  const std::vector<KvLayerGroup> groups = layer_groups(geometry);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].layers, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(groups[1].window_tokens, 0);
  EXPECT_EQ(groups[2].layers, std::vector<int64_t>{3});
  // The block holds the keys and values of 32 tokens with 2 heads of 8 features in 2 layers, in
  // fp32.
  EXPECT_GE(kv_block_bytes(geometry, groups[0], 32, kernels::CacheElement::Model),
            2 * 2 * 32 * 2 * 8 * 4);
  EXPECT_THROW(KvCache(geometry, 32, {1, 1}), StateError);
}

// A quantised linear multiplies by nearly the same weight and frees the weight itself. The head's
// losses use the quantised weight too.
TEST(Linear, QuantisedKeepsTheMapAndFreesTheWeight) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({5, 64});
  const at::Tensor weight = at::randn({96, 64});
  const at::Tensor wanted = x.matmul(weight.t());
  for (const kernels::WeightFormat format :
       {kernels::WeightFormat::Int8, kernels::WeightFormat::Int4Zero}) {
    Linear linear("l", weight.clone(), at::Tensor());
    linear.quantize({.weight = format, .group_inputs = 32});
    EXPECT_TRUE(linear.is_integer());
    EXPECT_EQ(linear.in_features(), 64);
    EXPECT_EQ(linear.out_features(), 96);
    EXPECT_TRUE(linear.weight().is_meta());
    const double error = ((linear.forward(x) - wanted).norm() / wanted.norm()).item<double>();
    EXPECT_LT(error, format == kernels::WeightFormat::Int8 ? 0.01 : 0.1);
    EXPECT_GT(error, 0);
    EXPECT_THROW(linear.weight_changed(), StateError);
  }
}

// With codes in place of the weight, the map, its gradient and its values are the same; the stored
// tensors are the codes.
TEST(Linear, CodedIsTheMapOfItsValues) {
  at::manual_seed(1);
  const kernels::BitsandbytesWeight codes =
      kernels::encode_weight(at::randn({96, 64}), {kernels::CodeType::Nf4, 64, true});
  const at::Tensor bias = at::randn({96});
  Linear linear("l", at::empty({96, 64}, at::kMeta), bias);
  linear.set_bitsandbytes(codes);
  EXPECT_TRUE(linear.is_bitsandbytes());
  EXPECT_FALSE(linear.trains());
  EXPECT_EQ(linear.in_features(), 64);
  std::vector<std::string> names;
  for (const NamedTensor& part : linear.parts()) names.push_back(part.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"l.weight", "l.weight.absmax", "l.weight.nested_absmax",
                                      "l.weight.nested_offset", "l.bias"}));
  const Linear whole("w", linear.values(), bias);
  at::Tensor x = at::randn({5, 64}).requires_grad_();
  at::Tensor same = x.detach().clone().requires_grad_();
  const at::Tensor grad = at::randn({5, 96});
  const at::Tensor found = linear.forward(x);
  const at::Tensor wanted = whole.forward(same);
  EXPECT_TRUE(at::allclose(found, wanted, 1e-5, 1e-5));
  found.backward(grad);
  wanted.backward(grad);
  EXPECT_TRUE(at::allclose(x.grad(), same.grad(), 1e-5, 1e-5));
  linear.decode();
  EXPECT_FALSE(linear.is_bitsandbytes());
  EXPECT_TRUE(at::equal(linear.weight(), whole.weight()));
}

class Doubling : public LinearAdapter {
 public:
  at::Tensor forward(const Linear& base, const at::Tensor& x, DrawKey) const override {
    return 2 * base.base_forward(x);
  }
};

TEST(Linear, AdapterStandsBeforeTheMap) {
  Linear linear("l", at::randn({3, 4}), at::randn({3}));
  const at::Tensor x = at::randn({2, 4});
  const at::Tensor plain = linear.forward(x);
  EXPECT_TRUE(at::allclose(plain, at::linear(x, linear.weight(), linear.bias())));
  EXPECT_FALSE(linear.trains());
  linear.set_adapter(std::make_shared<Doubling>());
  EXPECT_TRUE(linear.trains());
  EXPECT_TRUE(at::allclose(linear.forward(x), 2 * plain));
}

TEST(Linear, ChangedWeightsAreSeen) {
  Linear linear("l", at::ones({2, 2}), at::Tensor());
  const at::Tensor x = at::ones({1, 2});
  EXPECT_EQ(linear.forward(x).sum().item<float>(), 4.0f);
  linear.weight().mul_(3);
  linear.weight_changed();
  EXPECT_EQ(linear.forward(x).sum().item<float>(), 12.0f);
  linear.weight().requires_grad_(true);
  EXPECT_THROW(linear.frozen(), StateError);
}

TEST(Decoder, DeclaresWhatItReads) {
  Decoder decoder = small_decoder();
  const auto declared = declare_parameters(small_spec());
  const auto parameters = decoder.parameters();
  ASSERT_EQ(declared.size(), parameters.size());
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& parameter : parameters) shapes[parameter.name] = parameter.value.sizes().vec();
  for (const auto& parameter : declared) EXPECT_EQ(shapes.at(parameter.name), parameter.shape);
  EXPECT_EQ(decoder.block_linears().size(), 14u);
  int64_t matmul = decoder.head().weight().numel();
  for (const Linear* linear : decoder.block_linears()) matmul += linear->weight().numel();
  EXPECT_EQ(decoder.matmul_parameters(), matmul);
}

TEST(Decoder, RefusesIdsOutsideTheVocabulary) {
  Decoder decoder = small_decoder();
  EXPECT_THROW(decoder.hidden_states(small_batch(11), {}), DataError);
  EXPECT_THROW(decoder.hidden_states(small_batch(-1), {}), DataError);
}

TEST(Decoder, TiedHeadSharesTheEmbeddingsGradient) {
  Decoder decoder = small_decoder();
  decoder.set_requires_grad(true);
  decoder.head().forward(decoder.hidden_states(small_batch(), {})).sum().backward();
  const auto parameters = decoder.parameters();
  EXPECT_TRUE(decoder.head().weight().is_same(parameters[0].value));
  // The head gives every row a gradient, also the rows of tokens that are not in the batch.
  EXPECT_GT(parameters[0].value.grad()[7].abs().sum().item<float>(), 0.0f);
}

TEST(Decoder, NoiseIsOnTheEmbeddingsOfTrainingPassesAlone) {
  Decoder decoder = small_decoder();
  const at::NoGradGuard no_grad;
  const at::Tensor plain = decoder.hidden_states(small_batch(), {});
  EXPECT_TRUE(at::equal(decoder.hidden_states(small_batch(), {.noise_alpha = 5}), plain))
      << "an evaluation has no key";
  EXPECT_TRUE(at::equal(decoder.hidden_states(small_batch(), {.draw_key = 1}), plain));
  const at::Tensor noisy = decoder.hidden_states(small_batch(), {.draw_key = 1, .noise_alpha = 5});
  EXPECT_FALSE(at::allclose(noisy, plain));
  EXPECT_TRUE(
      at::equal(decoder.hidden_states(small_batch(), {.draw_key = 1, .noise_alpha = 5}), noisy));
  EXPECT_FALSE(
      at::equal(decoder.hidden_states(small_batch(), {.draw_key = 2, .noise_alpha = 5}), noisy));
}

TEST(Decoder, RecomputationSeesTheSameNoise) {
  Decoder decoder = small_decoder();
  decoder.set_requires_grad(true);
  const auto gradients = [&](ForwardOptions options) {
    options.draw_key = 4;
    options.noise_alpha = 2;
    decoder.hidden_states(small_batch(), options).square().sum().backward();
    std::vector<at::Tensor> all;
    for (NamedTensor& parameter : decoder.parameters()) {
      all.push_back(parameter.value.grad().clone());
      parameter.value.mutable_grad() = at::Tensor();
    }
    return all;
  };
  const std::vector<at::Tensor> wanted = gradients({});
  for (const ForwardOptions& options :
       {ForwardOptions{.recompute = Recompute::Selective},
        ForwardOptions{.recompute = Recompute::Blocks, .kept_inputs = KeptInputs::OnDevice},
        ForwardOptions{.recompute = Recompute::Blocks, .kept_inputs = KeptInputs::OnHost}}) {
    const auto found = gradients(options);
    for (size_t at = 0; at < wanted.size(); ++at)
      EXPECT_TRUE(at::allclose(found[at], wanted[at])) << at;
  }
}

// Blocks below the lowest trained block are left out of the graph.
TEST(Decoder, RecomputationStartsAtTheLowestTrainedBlock) {
  Decoder decoder = small_decoder();
  Linear* last = decoder.block_linears().back();
  last->weight().requires_grad_(true);
  last->weight_changed();
  decoder.hidden_states(small_batch(), {.recompute = Recompute::Blocks}).square().sum().backward();
  const at::Tensor recomputed = last->weight().grad().clone();
  last->weight().mutable_grad() = at::Tensor();
  decoder.hidden_states(small_batch(), {}).square().sum().backward();
  EXPECT_TRUE(at::allclose(recomputed, last->weight().grad()));
  for (const auto& parameter : decoder.parameters()) {
    EXPECT_EQ(parameter.value.grad().defined(), parameter.value.is_same(last->weight()))
        << parameter.name;
  }
}

}  // namespace
}  // namespace convoy::nn
