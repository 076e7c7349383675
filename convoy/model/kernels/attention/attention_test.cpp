// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

struct Case {
  std::vector<int64_t> row_starts;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t features = 16;
  AttentionConfig config{.scale = 0.25, .sliding_window = 0};
};

Tensors inputs_of(const Case& shape, at::ScalarType dtype) {
  const int64_t tokens = shape.row_starts.back();
  return {testing::sample({tokens, shape.heads, shape.features}, dtype, 1),
          testing::sample({tokens, shape.kv_heads, shape.features}, dtype, 2),
          testing::sample({tokens, shape.kv_heads, shape.features}, dtype, 3)};
}

testing::OpErrors errors_of(const Case& shape, at::ScalarType dtype, const Case& expected) {
  const auto op = [&](const Tensors& in) {
    return packed_attention(in[0], in[1], in[2], RowIndex(shape.row_starts), shape.config);
  };
  const auto reference = [&](const Tensors& in) {
    return reference::packed_attention(in[0], in[1], in[2], expected.row_starts, expected.config);
  };
  return testing::compare(op, reference, inputs_of(shape, dtype));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {.row_starts = {0, 5, 5, 6, 40}},
      {.row_starts = {0, 64, 193}, .heads = 3, .kv_heads = 1, .features = 20},
      {.row_starts = {0, 131}, .heads = 4, .kv_heads = 4, .features = 33},
      {.row_starts = {0, 200, 270},
       .heads = 8,
       .kv_heads = 2,
       .features = 64,
       .config = {0.125, 0}},
      {.row_starts = {0, 150, 160}, .config = {0.25, 7}},
      {.row_starts = {0, 150}, .config = {0.25, 70}},
      // These rows are longer than the blocks of keys that the loops of CPUs take.
      {.row_starts = {0, 577, 600}, .heads = 2, .kv_heads = 1},
      {.row_starts = {0, 700}, .heads = 2, .kv_heads = 1, .config = {0.25, 300}},
      // These cases have a soft cap on scores.
      {.row_starts = {0, 5, 5, 6, 40}, .config = {0.25, 0, 1.5}},
      {.row_starts = {0, 64, 193},
       .heads = 3,
       .kv_heads = 1,
       .features = 20,
       .config = {0.5, 0, 0.7}},
      {.row_starts = {0, 150, 160}, .features = 33, .config = {0.25, 7, 2.0}},
      {.row_starts = {0, 577, 600}, .heads = 2, .kv_heads = 1, .config = {0.25, 300, 50.0}},
  };
  return all;
}

TEST(PackedAttention, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Case& shape : cases()) {
      // The backward pass computes two successive products of sums that are rounded to bf16.
      const double bound = testing::tolerance(dtype, 256) * (dtype == at::kBFloat16 ? 2 : 1);
      EXPECT_LT(errors_of(shape, dtype, shape).worst(), bound)
          << dtype << " rows to " << shape.row_starts.back() << " window "
          << shape.config.sliding_window << " cap " << shape.config.score_cap;
    }
  }
}

TEST(PackedAttention, PlantedErrorsAreSeen) {
  const Case shape{.row_starts = {0, 64, 193}};
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const double bound = 2 * testing::tolerance(dtype, 256);
    EXPECT_GT(errors_of(shape, dtype, {.row_starts = {0, 65, 193}}).worst(), bound);
    EXPECT_GT(errors_of(shape, dtype, {.row_starts = {0, 64, 193}, .config = {0.25, 100}}).worst(),
              bound);
    EXPECT_GT(errors_of(shape, dtype, {.row_starts = {0, 64, 193}, .config = {0.28, 0}}).worst(),
              bound);
    EXPECT_GT(errors_of(shape, dtype, {.row_starts = {0, 64, 193}, .config = {0.25, 0, 3}}).worst(),
              bound);
  }
}

TEST(PackedAttention, RowsCannotSeeEachOther) {
  for (const double score_cap : {0.0, 1.5}) {
    for (auto dtype : {at::kFloat, at::kBFloat16}) {
      const Case shape{.row_starts = {0, 30, 90, 131}, .config = {0.25, 0, score_cap}};
      const Tensors first = inputs_of(shape, dtype);
      Tensors second = inputs_of(shape, dtype);
      for (at::Tensor& input : second) input.slice(0, 30, 90).mul_(-3);
      const auto run = [&](Tensors in) {
        for (at::Tensor& input : in) input.requires_grad_(true);
        const at::Tensor out =
            packed_attention(in[0], in[1], in[2], RowIndex(shape.row_starts), shape.config);
        Tensors all = torch::autograd::grad({out}, in, {testing::sample(out.sizes(), dtype, 9)});
        all.push_back(out.detach());
        return all;
      };
      const Tensors before = run(first);
      const Tensors after = run(second);
      for (size_t index = 0; index < before.size(); ++index) {
        EXPECT_TRUE(at::equal(before[index].slice(0, 0, 30), after[index].slice(0, 0, 30)));
        EXPECT_TRUE(at::equal(before[index].slice(0, 90), after[index].slice(0, 90)));
        EXPECT_FALSE(at::equal(before[index].slice(0, 30, 90), after[index].slice(0, 30, 90)));
      }
    }
  }
}

Tensors output_and_gradients(Tensors in, const std::vector<int64_t>& row_starts,
                             const AttentionConfig& config) {
  for (at::Tensor& input : in) input = input.detach().contiguous().requires_grad_(true);
  const at::Tensor out = packed_attention(in[0], in[1], in[2], RowIndex(row_starts), config);
  Tensors all = torch::autograd::grad({out}, in, {out.detach()});
  all.push_back(out.detach());
  return all;
}

TEST(PackedAttention, CappedRowsHaveTheBitsThatTheyHaveAlone) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t window : {0, 20}) {
      const Case shape{.row_starts = {0, 7, 100, 131}, .config = {0.25, window, 1.5}};
      const Tensors in = inputs_of(shape, dtype);
      const Tensors packed = output_and_gradients(in, shape.row_starts, shape.config);
      for (size_t row = 0; row + 1 < shape.row_starts.size(); ++row) {
        const auto of_row = [&](const at::Tensor& x) {
          return x.slice(0, shape.row_starts[row], shape.row_starts[row + 1]);
        };
        const Tensors alone = output_and_gradients({of_row(in[0]), of_row(in[1]), of_row(in[2])},
                                                   {0, of_row(in[0]).size(0)}, shape.config);
        for (size_t index = 0; index < alone.size(); ++index)
          EXPECT_TRUE(at::equal(alone[index], of_row(packed[index]))) << dtype << " row " << row;
      }
    }
  }
}

// A cap of 2 makes scores of 30 and -30 equal to 2 and -2 in seven digits, with a slope of 0.
TEST(PackedAttention, ACapBoundsScores) {
  constexpr int64_t kFeatures = 8;
  const at::Tensor q = at::full({2, 1, kFeatures}, 1.0).requires_grad_(true);
  const at::Tensor k =
      at::cat({at::full({1, 1, kFeatures}, 30.0), at::full({1, 1, kFeatures}, -30.0)})
          .requires_grad_(true);
  const at::Tensor v = at::cat({at::ones({1, 1, kFeatures}), at::zeros({1, 1, kFeatures})});
  const AttentionConfig config{.scale = 1.0 / kFeatures, .score_cap = 2.0};
  const at::Tensor out = packed_attention(q, k, v, RowIndex({0, 2}), config);
  const double first = 1.0 / (1.0 + std::exp(-4.0));
  EXPECT_NEAR(out[1].max().item<double>(), first, 1e-6);
  EXPECT_NEAR(out[1].min().item<double>(), first, 1e-6);
  for (const at::Tensor& gradient : torch::autograd::grad({out.sum()}, {q, k}))
    EXPECT_LT(gradient.abs().max().item<double>(), 1e-5);
}

// With one visible key the weights are 1: the output is v, and q and k get no gradient.
TEST(PackedAttention, OneVisibleKey) {
  for (const Case& shape :
       {Case{.row_starts = {0, 1, 2, 3}}, Case{.row_starts = {0, 3}, .config = {0.25, 1}}}) {
    Tensors in = inputs_of(shape, at::kFloat);
    for (at::Tensor& input : in) input.requires_grad_(true);
    const at::Tensor out =
        packed_attention(in[0], in[1], in[2], RowIndex(shape.row_starts), shape.config);
    // On a GPU the weight is e^x / e^x with a reciprocal that may be off by its last bit.
    EXPECT_TRUE(at::allclose(out, in[2].repeat_interleave(2, 1), 1e-6, 0));
    const Tensors gradients = torch::autograd::grad({out.sum()}, in);
    EXPECT_LT(gradients[0].abs().max().item<float>(), 1e-5);
    EXPECT_LT(gradients[1].abs().max().item<float>(), 1e-5);
    EXPECT_TRUE(at::allclose(gradients[2], at::full_like(gradients[2], 2.0)));
  }
}

TEST(PackedAttention, NoTokens) {
  const Tensors in = inputs_of({.row_starts = {0}}, at::kFloat);
  EXPECT_EQ(packed_attention(in[0], in[1], in[2], RowIndex(), {}).numel(), 0);
}

TEST(PackedAttention, TakesStridedHeads) {
  const at::Tensor fused = testing::sample({40, 8, 16}, at::kBFloat16, 1);
  const at::Tensor q = fused.slice(1, 0, 4);
  const at::Tensor k = fused.slice(1, 4, 6);
  const at::Tensor v = fused.slice(1, 6, 8);
  EXPECT_TRUE(at::equal(
      packed_attention(q, k, v, RowIndex({0, 40}), {}),
      packed_attention(q.contiguous(), k.contiguous(), v.contiguous(), RowIndex({0, 40}), {})));
}

}  // namespace
}  // namespace convoy::kernels
