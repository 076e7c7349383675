// SPDX-License-Identifier: Apache-2.0
//
// Tests a decoder with layers of Gated DeltaNet and of gated attention: rows do not mix, states are
// kept, and parameters that are neither linear maps nor norms are trained. tests/golden/models
// compares the numbers.
#include "convoy/model/nn/gated_delta_net.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/nn/cache_test.h"
#include "convoy/model/nn/decoder.h"

namespace convoy::nn {
namespace {

constexpr int64_t kVocab = 29;

architecture::DecoderSpec hybrid_spec() {
  architecture::LayerSpec recurrent{.mixer = architecture::TokenMixer::GatedDeltaNet};
  return {.family = "test",
          .vocab_size = kVocab,
          .hidden_size = 18,
          .num_heads = 3,
          .num_kv_heads = 1,
          .head_dim = 8,
          .ffn_size = 22,
          .max_positions = 512,
          .norm_order = architecture::NormOrder::ScaleByOnePlusThenCast,
          .query_key_norm = true,
          .attention_gate = true,
          .attention_scale = 0.4,
          .tied_head = true,
          .ropes = {architecture::RopeSpec{.rotated_features = 2}},
          .layers = {recurrent, architecture::LayerSpec{}, recurrent},
          .delta_net = {.num_key_heads = 2,
                        .num_value_heads = 4,
                        .key_head_dim = 5,
                        .value_head_dim = 7,
                        .conv_width = 4}};
}

Decoder hybrid(at::ScalarType dtype = at::kFloat) {
  at::manual_seed(3);
  return Decoder(hybrid_spec(), [dtype](const architecture::ParameterDeclaration& p) {
    return (at::randn(p.shape) * 0.4).to(dtype);
  });
}

using Rows = std::vector<std::vector<int64_t>>;

std::vector<int64_t> row_of(int64_t tokens, int64_t seed) {
  std::vector<int64_t> row;
  for (int64_t at = 0; at < tokens; ++at) row.push_back((seed * 7 + at * at * 3 + at) % kVocab);
  return row;
}

// Makes a batch of `rows`. Row r begins at position `first_positions[r]`, or at 0 without
// positions.
TokenBatch batch_of(const Rows& rows, const std::vector<int64_t>& first_positions = {}) {
  std::vector<int64_t> ids, positions, starts = {0};
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t first = first_positions.empty() ? 0 : first_positions[row];
    for (size_t at = 0; at < rows[row].size(); ++at) {
      ids.push_back(rows[row][at]);
      positions.push_back(first + static_cast<int64_t>(at));
    }
    starts.push_back(std::ssize(ids));
  }
  return TokenBatch(ids, positions, std::move(starts));
}

at::Tensor states_of(Decoder& model, const Rows& rows) {
  const at::NoGradGuard no_grad;
  return model.hidden_states(batch_of(rows), {});
}

Rows rows_of_lengths(const std::vector<int64_t>& lengths) {
  Rows rows;
  for (const int64_t length : lengths) rows.push_back(row_of(length, std::ssize(rows)));
  return rows;
}

TEST(GatedDeltaNet, DeclaresWhatItReads) {
  std::vector<architecture::ParameterDeclaration> asked;
  Decoder model(hybrid_spec(), [&](const architecture::ParameterDeclaration& parameter) {
    asked.push_back(parameter);
    return at::empty(parameter.shape);
  });
  EXPECT_EQ(asked, architecture::declare_parameters(hybrid_spec()));
  std::set<std::string> names;
  for (const NamedTensor& parameter : model.parameters())
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
  EXPECT_EQ(names.size(), asked.size());
  for (const char* end :
       {"A_log", "dt_bias", "conv1d.weight", "norm.weight", "in_proj_qkv.weight",
        "in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight", "out_proj.weight"})
    EXPECT_TRUE(names.contains(std::string("model.layers.2.linear_attn.") + end)) << end;
  int64_t products = model.head().weight().numel();
  for (const Linear* linear : model.block_linears()) products += linear->weight().numel();
  EXPECT_EQ(model.matmul_parameters(), products);
}

// Some rows are longer than a chunk of the delta rule, and some are shorter than the convolution.
TEST(GatedDeltaNet, PackedRowsAreTheRowsAloneBitForBit) {
  const Rows rows = rows_of_lengths({1, 70, 2, 3, 130, 64, 5, 1});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool trains : {false, true}) {
      Decoder model = hybrid(dtype);
      model.set_requires_grad(trains);
      const at::Tensor packed = states_of(model, rows);
      int64_t begin = 0;
      for (const std::vector<int64_t>& row : rows) {
        EXPECT_TRUE(
            at::equal(packed.narrow(0, begin, std::ssize(row)), states_of(model, Rows{row})))
            << dtype << " row of " << row.size();
        begin += std::ssize(row);
      }
    }
  }
}

std::map<std::string, at::Tensor> gradients_of(Decoder& model, const Rows& rows,
                                               Recompute recompute = Recompute::Nothing) {
  for (NamedTensor& parameter : model.parameters()) parameter.value.mutable_grad() = at::Tensor();
  model.hidden_states(batch_of(rows), {.recompute = recompute}).square().sum().backward();
  std::map<std::string, at::Tensor> found;
  for (const NamedTensor& parameter : model.parameters())
    found[parameter.name] = parameter.value.grad().clone();
  return found;
}

void expect_near(const std::map<std::string, at::Tensor>& found,
                 const std::map<std::string, at::Tensor>& wanted) {
  for (const auto& [name, value] : wanted) {
    const double largest = value.abs().max().item<double>();
    EXPECT_GT(largest, 0) << name;
    EXPECT_LT((found.at(name) - value).abs().max().item<double>(), 2e-5 * largest) << name;
  }
}

TEST(GatedDeltaNet, GradientsOfPackedRowsAreTheSumOverTheRows) {
  Decoder model = hybrid();
  model.set_requires_grad(true);
  const Rows rows = rows_of_lengths({3, 70, 9});
  std::map<std::string, at::Tensor> sum;
  for (const std::vector<int64_t>& row : rows)
    for (const auto& [name, value] : gradients_of(model, Rows{row}))
      sum[name] = sum.contains(name) ? sum.at(name) + value : value;
  expect_near(gradients_of(model, rows), sum);
}

TEST(GatedDeltaNet, RecomputedBlocksGiveTheSameGradients) {
  Decoder model = hybrid();
  model.set_requires_grad(true);
  const Rows rows = rows_of_lengths({9, 66});
  const auto kept = gradients_of(model, rows);
  for (const Recompute recompute : {Recompute::Selective, Recompute::Blocks})
    for (const auto& [name, value] : gradients_of(model, rows, recompute))
      EXPECT_TRUE(at::equal(value, kept.at(name))) << name;
}

// Recomputation and training find out by these parameters whether a block is trained.
TEST(GatedDeltaNet, EachParameterMakesItsBlockTrain) {
  for (const char* end : {"A_log", "dt_bias", "conv1d.weight", "linear_attn.norm.weight"}) {
    Decoder model = hybrid();
    model.set_requires_grad(false);
    at::Tensor trained;
    for (NamedTensor& parameter : model.parameters())
      if (parameter.name == "model.layers.0.linear_attn." + std::string(end) ||
          parameter.name == "model.layers.0." + std::string(end))
        trained = parameter.value.requires_grad_(true);
    ASSERT_TRUE(trained.defined()) << end;
    const Rows rows = rows_of_lengths({6, 9});
    model.hidden_states(batch_of(rows), {.recompute = Recompute::Blocks}).sum().backward();
    EXPECT_GT(trained.grad().abs().max().item<float>(), 0) << end;
  }
}

TEST(GatedDeltaNet, UnitsHoldEveryParameterOfABlock) {
  Decoder model = hybrid();
  const std::vector<Unit> units = model.units();
  ASSERT_EQ(units.size(), 5u);  // embedding (tied to the head), three blocks, norm
  std::set<std::string> names;
  for (const NamedTensor& parameter : units[3].frozen) names.insert(parameter.name);
  for (const char* end : {"A_log", "dt_bias", "conv1d.weight", "norm.weight", "out_proj.weight"})
    EXPECT_TRUE(names.contains(std::string("model.layers.2.linear_attn.") + end)) << end;
  EXPECT_EQ(units[3].linears.size(), 8u);
}

TEST(GatedDeltaNet, QuantisesItsLinearMapsAlone) {
  Decoder model = hybrid();
  const Rows rows = rows_of_lengths({9, 12});
  const at::Tensor whole = states_of(model, rows);
  model.quantize_blocks({.weight = kernels::WeightFormat::Int8});
  for (const Linear* linear : model.block_linears()) EXPECT_TRUE(linear->is_integer());
  for (const NamedTensor& parameter : model.parameters())
    if (parameter.name.find("A_log") != std::string::npos ||
        parameter.name.find("conv1d") != std::string::npos) {
      EXPECT_FALSE(parameter.value.is_meta()) << parameter.name;
    }
  const at::Tensor coded = states_of(model, rows);
  EXPECT_LT(((coded - whole).norm() / whole.norm()).item<double>(), 0.1);
  EXPECT_FALSE(at::equal(coded, whole));
}

class CachedRows {
 public:
  CachedRows(Decoder& model, int64_t rows) : model_(model), cache_(model, rows) {}

  // Returns the hidden states of the next `tokens` of `row`, which has the place `place` in the
  // cache.
  at::Tensor feed(const std::vector<int64_t>& row, int64_t place, int64_t tokens) {
    const at::NoGradGuard no_grad;
    const int64_t begin = cache_.length(place);
    const std::vector<int64_t> piece(row.begin() + begin, row.begin() + begin + tokens);
    cache_.grow({{place, tokens}});
    return model_.hidden_states(batch_of({piece}, {begin}), {.cache = cache_.cache()});
  }

 private:
  Decoder& model_;
  testing::GrowingCache cache_;
};

TEST(GatedDeltaNet, PiecesOfARowGiveTheBitsOfTheRow) {
  Decoder model = hybrid();
  const std::vector<int64_t> row = row_of(137, 4);
  const at::Tensor whole = CachedRows(model, 1).feed(row, 0, std::ssize(row));
  CachedRows pieces(model, 1);
  std::vector<at::Tensor> found;
  for (const int64_t tokens : {1, 2, 64, 1, 30, 39}) found.push_back(pieces.feed(row, 0, tokens));
  EXPECT_TRUE(at::equal(at::cat(found), whole));
  // Without a cache the hidden states are the same except for rounding.
  EXPECT_TRUE(at::allclose(whole, states_of(model, Rows{row}), 1e-4, 1e-5));
}

TEST(GatedDeltaNet, SingleTokensContinueARow) {
  Decoder model = hybrid();
  const std::vector<int64_t> row = row_of(30, 4), other = row_of(30, 5);
  CachedRows cached(model, 2);
  std::vector<at::Tensor> found = {cached.feed(row, 1, 7)};
  for (int64_t at = 7; at < 30; ++at) {
    cached.feed(other, 0, 1);
    found.push_back(cached.feed(row, 1, 1));
  }
  EXPECT_TRUE(at::allclose(at::cat(found), states_of(model, Rows{row}), 1e-4, 1e-5));
}

TEST(RecurrentStates, ARowThatBeginsFindsNothingOfTheRowBefore) {
  const architecture::DeltaNetSpec sizes = hybrid_spec().delta_net;
  const auto options = at::TensorOptions().dtype(at::kBFloat16);
  RecurrentStates states(sizes, {true, false, true}, 3, options);
  EXPECT_EQ(states.conv_tails_SVC(0).sizes(), (std::vector<int64_t>{3, 3, 48}));
  EXPECT_EQ(states.delta_states_SHEF(2).sizes(), (std::vector<int64_t>{3, 4, 5, 7}));
  EXPECT_EQ(states.delta_states_SHEF(2).scalar_type(), at::kFloat);
  EXPECT_FALSE(states.conv_tails_SVC(1).defined());
  EXPECT_EQ(recurrent_state_bytes(sizes, 2, options), 2 * (48 * 3 * 2 + 4 * 5 * 7 * 4));
  at::Tensor tails = states.conv_tails_SVC(0), rule = states.delta_states_SHEF(2);
  tails.fill_(2);
  rule.fill_(3);
  states.set_rows({{.slot = 2, .begins = true}, {.slot = 0, .begins = false}});
  EXPECT_EQ(states.slots(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(tails[2].abs().max().item<float>() + rule[2].abs().max().item<float>(), 0);
  EXPECT_EQ(tails[0].min().item<float>() + rule[1].min().item<float>(), 5);
  EXPECT_THROW(states.set_rows({{.slot = 3}}), StateError);
}

TEST(RecurrentStates, ARowTakesTheStateOfAPrefixAndLeavesItsOwn) {
  RecurrentStates states(hybrid_spec().delta_net, {true, false, true}, 4, at::kFloat);
  const auto set = [&](int64_t slot, double value) {
    for (const int64_t layer : {0, 2}) {
      states.conv_tails_SVC(layer)[slot].fill_(value);
      states.delta_states_SHEF(layer)[slot].fill_(value + static_cast<double>(layer));
    }
  };
  const auto expect = [&](int64_t slot, float value) {
    for (const int64_t layer : {0, 2}) {
      EXPECT_TRUE(states.conv_tails_SVC(layer)[slot].eq(value).all().item<bool>()) << slot;
      EXPECT_TRUE(states.delta_states_SHEF(layer)[slot]
                      .eq(value + static_cast<float>(layer))
                      .all()
                      .item<bool>())
          << slot;
    }
  };
  for (int64_t slot = 0; slot < 4; ++slot) set(slot, static_cast<double>(slot));
  states.set_rows({{.slot = 1, .begins_as = 3}, {.slot = 0, .kept_in = 2}});
  expect(1, 3);
  expect(2, 2);
  set(0, 7);  // as the pass would change slot 0
  states.keep_states();
  expect(2, 7);
  expect(3, 3);
  set(0, 8);
  states.keep_states();
  expect(2, 7);
  EXPECT_THROW(states.set_rows({{.slot = 0, .begins_as = 4}}), StateError);
  EXPECT_THROW(states.set_rows({{.slot = 0, .kept_in = -1}}), StateError);
}

TEST(KvCache, LayersWithAStateStoreNoKeys) {
  Decoder model = hybrid();
  const KvGeometry geometry = model.kv_geometry();
  EXPECT_TRUE(geometry.has_states());
  const std::vector<KvLayerGroup> groups = layer_groups(geometry);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].layers, std::vector<int64_t>{1});
  EXPECT_EQ(state_bytes(geometry), recurrent_state_bytes(geometry.delta_net, 2, geometry.options));
}

}  // namespace
}  // namespace convoy::nn
