// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels::delta_rule {
namespace {

using testing::sample;
using testing::Tensors;

struct Sizes {
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t key_features = 4;
  int64_t value_features = 4;
};

int64_t tokens_of(const std::vector<int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

RowIndex rows_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> starts{0};
  for (const int64_t length : lengths) starts.push_back(starts.back() + length);
  return RowIndex(starts);
}

// Decays from 1 down to about a third, betas within (0, 1).
Tensors inputs_of(int64_t tokens, const Sizes& sizes, at::ScalarType dtype, uint64_t seed = 1) {
  const at::Tensor decay = sample({tokens, sizes.heads}, at::kFloat, seed + 3).square() * -0.3;
  return {sample({tokens, sizes.key_heads, sizes.key_features}, dtype, seed),
          sample({tokens, sizes.key_heads, sizes.key_features}, dtype, seed + 1),
          sample({tokens, sizes.heads, sizes.value_features}, dtype, seed + 2), decay,
          sample({tokens, sizes.heads}, at::kFloat, seed + 4).sigmoid()};
}

at::Tensor rule(const Tensors& in, const RowIndex& rows) {
  return gated_delta_rule(in[0], in[1], in[2], in[3], in[4], rows);
}

at::Tensor of_unit_length(const at::Tensor& x) {
  return x / (x.square().sum(-1, true) + 1e-6).sqrt();
}

struct Outcome {
  at::Tensor out;
  at::Tensor state;  // [H, E, F] behind the last token
};

// The recurrence as it stands in the header, token by token.
Outcome row_by_token(const Tensors& in, at::Tensor state) {
  const int64_t group = in[2].size(1) / in[1].size(1);
  const at::Tensor q = of_unit_length(in[0]).repeat_interleave(group, 1) /
                       std::sqrt(static_cast<double>(in[0].size(2)));
  const at::Tensor k = of_unit_length(in[1]).repeat_interleave(group, 1);
  const at::Tensor decays = in[3].exp();
  Tensors out;
  for (int64_t token = 0; token < in[0].size(0); ++token) {
    state = state * decays[token].view({-1, 1, 1});
    const at::Tensor seen = (k[token].unsqueeze(2) * state).sum(1);
    const at::Tensor change = (in[2][token] - seen) * in[4][token].unsqueeze(-1);
    state = state + k[token].unsqueeze(2) * change.unsqueeze(1);
    out.push_back((q[token].unsqueeze(2) * state).sum(1));
  }
  return {at::stack(out), state};
}

Tensors tokens_from(const Tensors& in, int64_t begin, int64_t count) {
  Tensors part;
  for (const at::Tensor& input : in) part.push_back(input.narrow(0, begin, count));
  return part;
}

at::Tensor zero_states(int64_t rows, const Sizes& sizes, at::ScalarType dtype = at::kFloat) {
  return at::zeros({rows, sizes.heads, sizes.key_features, sizes.value_features}, dtype);
}

at::Tensor reference(const Tensors& in, const RowIndex& rows, const Sizes& sizes) {
  Tensors out{in[2].narrow(0, 0, 0)};
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    if (rows.length(row) == 0) continue;
    out.push_back(row_by_token(tokens_from(in, rows.begin(row), rows.length(row)),
                               zero_states(1, sizes, at::kDouble)[0])
                      .out);
  }
  return at::cat(out);
}

testing::OpErrors errors_of(const std::vector<int64_t>& lengths, const Sizes& sizes,
                            at::ScalarType dtype) {
  const RowIndex rows = rows_of(lengths);
  return testing::compare([&](const Tensors& in) { return rule(in, rows); },
                          [&](const Tensors& in) { return reference(in, rows, sizes); },
                          inputs_of(tokens_of(lengths), sizes, dtype));
}

// Terms of the longest sum: the features of a key, and the tokens that a state remembers.
double tolerance(at::ScalarType dtype, const Sizes& sizes) {
  return testing::tolerance(dtype, 8 * (sizes.key_features + 64));
}

const std::vector<Sizes> kOddSizes = {{3, 3, 5, 7}, {4, 2, 33, 18}, {2, 1, 40, 70}};

TEST(GatedDeltaRule, EqualsReference) {
  const std::vector<std::vector<int64_t>> packs = {{3, 1, 9}, {33, 0, 70, 31}};
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto& lengths : packs) {
      for (const Sizes& sizes : kOddSizes) {
        const auto errors = errors_of(lengths, sizes, dtype);
        EXPECT_LT(errors.output, tolerance(dtype, sizes)) << dtype << " " << lengths;
        for (size_t input = 0; input < 5; ++input)
          EXPECT_LT(errors.gradients[input], tolerance(dtype, sizes))
              << dtype << " " << lengths << " " << sizes.key_features << " input " << input;
      }
    }
  }
}

// A row is longer than the states that backward on CPUs keeps at a time.
TEST(GatedDeltaRule, EqualsReferenceInLongRows) {
  const Sizes sizes{2, 1, 3, 2};
  EXPECT_LT(errors_of({2100, 40}, sizes, at::kFloat).worst(), tolerance(at::kFloat, sizes));
}

TEST(GatedDeltaRule, RowsThatMixAreSeen) {
  const Sizes sizes{2, 1, 8, 8};
  const RowIndex apart = rows_of({20, 30}), mixed = rows_of({50});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto errors =
        testing::compare([&](const Tensors& in) { return rule(in, mixed); },
                         [&](const Tensors& in) { return reference(in, apart, sizes); },
                         inputs_of(50, sizes, dtype));
    EXPECT_GT(errors.output, tolerance(dtype, sizes));
    for (const double error : errors.gradients) EXPECT_GT(error, tolerance(dtype, sizes));
  }
}

// The first token's decay meets an empty state: the gradient is rounding alone.
TEST(GatedDeltaRule, OfOneTokenHasNoDecay) {
  Tensors in = inputs_of(1, {2, 1, 16, 16}, at::kFloat);
  in[3].requires_grad_();
  const at::Tensor out = rule(in, rows_of({1}));
  const auto grad = torch::autograd::grad({out.sum()}, {in[3]})[0];
  EXPECT_LT(grad.abs().max().item<double>(), 1e-6);
}

// A token that forgets everything follows one that forgets nothing, and the reverse.
TEST(GatedDeltaRule, TakesAnyDecay) {
  const Sizes sizes{1, 1, 8, 8};
  Tensors in = inputs_of(80, sizes, at::kFloat);
  in[3] = at::zeros({80, 1});
  for (const int64_t token : {7, 8, 31, 32, 60}) in[3][token] = token % 2 == 0 ? -1e4 : -80.0;
  const RowIndex rows = rows_of({80});
  const auto errors =
      testing::compare([&](const Tensors& of) { return rule(of, rows); },
                       [&](const Tensors& of) { return reference(of, rows, sizes); }, in);
  EXPECT_LT(errors.worst(), tolerance(at::kFloat, sizes));
}

TEST(GatedDeltaRule, WithoutTokensIsEmpty) {
  const Sizes sizes{2, 1, 4, 6};
  Tensors in = inputs_of(0, sizes, at::kFloat);
  for (at::Tensor& input : in) input.requires_grad_();
  const at::Tensor out = rule(in, rows_of({0, 0}));
  EXPECT_EQ(out.sizes(), at::IntArrayRef({0, 2, 6}));
  for (const at::Tensor& grad : torch::autograd::grad({out.sum()}, in)) EXPECT_EQ(grad.numel(), 0);
  const at::Tensor states = at::ones({2, 2, 4, 6});
  gated_delta_rule_with_state(in[0], in[1], in[2], in[3], in[4], rows_of({0, 0}), states);
  EXPECT_TRUE(at::equal(states, at::ones_like(states)));
}

// The output and the gradients of all inputs.
Tensors results_of(Tensors in, const RowIndex& rows) {
  for (at::Tensor& input : in) input = input.detach().clone().requires_grad_();
  Tensors results{rule(in, rows)};
  const at::Tensor cotangent = sample(results[0].sizes(), results[0].scalar_type(), 77);
  for (const at::Tensor& grad : torch::autograd::grad(results, in, {cotangent}))
    results.push_back(grad);
  return results;
}

class DeltaRuleBits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
    threads_before_ = at::get_num_threads();
  }
  void TearDown() override {
    if (threads_before_ > 0) at::set_num_threads(threads_before_);
  }
  int threads_before_ = 0;
};

TEST_F(DeltaRuleBits, DoNotDependOnNeighboursOrThreads) {
  const std::vector<int64_t> lengths = {1, 40, 3, 300};
  const RowIndex rows = rows_of(lengths);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Sizes& sizes : {Sizes{4, 2, 33, 70}, Sizes{2, 2, 64, 64}}) {
      const Tensors in = inputs_of(rows.num_tokens(), sizes, dtype);
      at::set_num_threads(1);
      const Tensors together = results_of(in, rows);
      at::set_num_threads(3);
      const Tensors threaded = results_of(in, rows);
      for (size_t at = 0; at < together.size(); ++at)
        EXPECT_TRUE(at::equal(threaded[at], together[at])) << dtype << " result " << at;
      for (int64_t row = 0; row < rows.num_rows(); ++row) {
        Tensors alone = tokens_from(in, rows.begin(row), rows.length(row));
        for (at::Tensor& input : alone) input = input.detach().clone().requires_grad_();
        Tensors results{rule(alone, rows_of({rows.length(row)}))};
        const at::Tensor cotangent =
            sample(together[0].sizes(), dtype, 77).narrow(0, rows.begin(row), rows.length(row));
        for (const at::Tensor& grad : torch::autograd::grad(results, alone, {cotangent}))
          results.push_back(grad);
        const Tensors wanted = tokens_from(together, rows.begin(row), rows.length(row));
        for (size_t at = 0; at < results.size(); ++at)
          EXPECT_TRUE(at::equal(results[at], wanted[at])) << dtype << " row " << row << " " << at;
      }
    }
  }
}

TEST_F(DeltaRuleBits, DoNotDependOnWhereColumnsLie) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor joined = sample({50, 2 * 2 * 12 + 4 * 20}, dtype, 5);
    const Tensors apart = inputs_of(50, {4, 2, 12, 20}, dtype);
    const at::Tensor q = joined.narrow(1, 0, 24).view({50, 2, 12}),
                     k = joined.narrow(1, 24, 24).view({50, 2, 12}),
                     v = joined.narrow(1, 48, 80).view({50, 4, 20});
    const auto found = results_of({q, k, v, apart[3], apart[4]}, rows_of({50}));
    EXPECT_TRUE(at::equal(gated_delta_rule(q, k, v, apart[3], apart[4], rows_of({50})), found[0]));
  }
}

// Rows of `lengths` in pieces of `piece` tokens, with the states of slots that ascend from 1.
Outcome in_pieces(const Tensors& in, const RowIndex& rows, int64_t piece, const Sizes& sizes) {
  Outcome run{at::empty_like(in[2]), zero_states(rows.num_rows() + 1, sizes)};
  for (int64_t first = 0; first < rows.longest(); first += piece) {
    std::vector<int64_t> lengths, slots, begins;
    for (int64_t row = rows.num_rows() - 1; row >= 0; --row) {
      const int64_t count = std::clamp<int64_t>(rows.length(row) - first, 0, piece);
      lengths.push_back(count);
      slots.push_back(row + 1);
      begins.push_back(rows.begin(row) + first);
    }
    Tensors parts[5];
    for (size_t at = 0; at < lengths.size(); ++at) {
      for (size_t input = 0; input < 5; ++input)
        parts[input].push_back(lengths[at] > 0 ? in[input].narrow(0, begins[at], lengths[at])
                                               : in[input].narrow(0, 0, 0));
    }
    const at::Tensor out = gated_delta_rule_with_state(
        at::cat(parts[0]), at::cat(parts[1]), at::cat(parts[2]), at::cat(parts[3]),
        at::cat(parts[4]), rows_of(lengths), run.state, slots);
    int64_t at_token = 0;
    for (size_t at = 0; at < lengths.size(); at_token += lengths[at++])
      if (lengths[at] > 0)
        run.out.narrow(0, begins[at], lengths[at]).copy_(out.narrow(0, at_token, lengths[at]));
  }
  return run;
}

TEST(GatedDeltaRuleWithState, OfPiecesEqualsTheWholeRow) {
  const RowIndex rows = rows_of({37, 2, 70});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Sizes& sizes : {Sizes{4, 2, 33, 18}, Sizes{2, 1, 16, 64}}) {
      const Tensors in = inputs_of(rows.num_tokens(), sizes, dtype);
      const at::Tensor whole = rule(in, rows);
      const Outcome last = in_pieces(in, rows, rows.longest(), sizes);
      for (const int64_t piece : {1, 5, 32, 70}) {
        const Outcome run = in_pieces(in, rows, piece, sizes);
        EXPECT_LT(testing::relative_error(run.out, whole), tolerance(dtype, sizes)) << piece;
        if (testing::runs_cpu_table()) {
          EXPECT_TRUE(at::equal(run.out, whole)) << dtype << " pieces of " << piece;
          EXPECT_TRUE(at::equal(run.state, last.state)) << dtype << " pieces of " << piece;
        }
        EXPECT_TRUE(at::equal(run.state[0], zero_states(1, sizes)[0])) << "a state without a row";
        for (int64_t row = 0; row < rows.num_rows(); ++row) {
          Tensors wide = tokens_from(in, rows.begin(row), rows.length(row));
          for (at::Tensor& input : wide) input = input.to(at::kDouble);
          const at::Tensor wanted = row_by_token(wide, zero_states(1, sizes, at::kDouble)[0]).state;
          EXPECT_LT(testing::relative_error(run.state[row + 1], wanted),
                    tolerance(at::kFloat, sizes));
        }
      }
    }
  }
}

TEST(GatedDeltaRuleWithState, RefusesStatesThatDoNotFit) {
  const Tensors in = inputs_of(4, {2, 1, 4, 6}, at::kFloat);
  const auto run = [&](const at::Tensor& states, const std::vector<int64_t>& slots) {
    gated_delta_rule_with_state(in[0], in[1], in[2], in[3], in[4], rows_of({1, 3}), states, slots);
  };
  const at::Tensor states = at::zeros({3, 2, 4, 6});
  EXPECT_NO_THROW(run(states, {2, 0}));
  EXPECT_THROW(run(states, {0}), StateError);
  EXPECT_THROW(run(states, {0, 3}), StateError);
  EXPECT_THROW(run(states, {1, 1}), StateError);
  EXPECT_THROW(run(states.to(at::kDouble), {}), StateError);
  EXPECT_THROW(run(states.transpose(2, 3), {}), StateError);
}

TEST(GatedDeltaRule, RefusesInputsThatDoNotFit) {
  const Tensors in = inputs_of(4, {2, 1, 4, 6}, at::kFloat);
  const RowIndex rows = rows_of({4});
  EXPECT_THROW(gated_delta_rule(in[0], in[1], in[2], in[3], in[4], rows_of({3})), StateError);
  EXPECT_THROW(gated_delta_rule(in[0].to(at::kBFloat16), in[1], in[2], in[3], in[4], rows),
               StateError);
  EXPECT_THROW(gated_delta_rule(in[0], in[1], in[2], in[3].to(at::kBFloat16), in[4], rows),
               StateError);
  const at::Tensor three = at::ones({4, 3, 4});
  EXPECT_THROW(gated_delta_rule(three, three, in[2], in[3], in[4], rows), StateError);
}

}  // namespace
}  // namespace convoy::kernels::delta_rule
