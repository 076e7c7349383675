// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"

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
      // Longer than the blocks of keys that the loops of CPUs take.
      {.row_starts = {0, 577, 600}, .heads = 2, .kv_heads = 1},
      {.row_starts = {0, 700}, .heads = 2, .kv_heads = 1, .config = {0.25, 300}},
  };
  return all;
}

TEST(PackedAttention, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Case& shape : cases()) {
      // Two products of bf16 sums follow one another in backward.
      const double bound = testing::tolerance(dtype, 256) * (dtype == at::kBFloat16 ? 2 : 1);
      EXPECT_LT(errors_of(shape, dtype, shape).worst(), bound)
          << dtype << " rows to " << shape.row_starts.back() << " window "
          << shape.config.sliding_window;
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
  }
}

TEST(PackedAttention, RowsCannotSeeEachOther) {
  const Case shape{.row_starts = {0, 30, 90, 131}};
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
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
