// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rope/rope.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

struct Tables {
  at::Tensor cos_PE;
  at::Tensor sin_PE;
};
Tables tables(int64_t positions, int64_t half, double base) {
  const at::Tensor frequencies =
      at::pow(base, -at::arange(half, at::kDouble) / static_cast<double>(half));
  const at::Tensor angles = at::arange(positions, at::kDouble).unsqueeze(1) * frequencies;
  return {angles.cos().to(at::kFloat), angles.sin().to(at::kFloat)};
}

testing::OpErrors rope_errors_of(int64_t tokens, int64_t heads, int64_t width, at::ScalarType dtype,
                                 double planted_base = 1e4) {
  const Tables used = tables(50, width / 2, 1e4);
  const Tables expected = tables(50, width / 2, planted_base);
  const at::Tensor positions = (at::arange(tokens, at::kLong) * 7).remainder(50);
  const auto op = [&](const Tensors& in) {
    return rope(in[0], used.cos_PE, used.sin_PE, positions);
  };
  const auto reference = [&](const Tensors& in) {
    return reference::rope(in[0], expected.cos_PE, expected.sin_PE, positions);
  };
  return testing::compare(op, reference, {testing::sample({tokens, heads, width}, dtype, 1)});
}

TEST(Rope, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (int64_t tokens : {0, 1, 37}) {
      for (int64_t width : {2, 6, 64, 80}) {
        EXPECT_LT(rope_errors_of(tokens, 3, width, dtype).worst(), testing::tolerance(dtype, 2))
            << tokens << " " << width;
      }
    }
  }
}

TEST(Rope, PlantedErrorIsSeen) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_GT(rope_errors_of(37, 2, 64, dtype, 1.3e4).worst(), testing::tolerance(dtype, 2));
  }
}

TEST(Rope, TakesStridedHeads) {
  const Tables used = tables(10, 4, 1e4);
  const at::Tensor positions = at::arange(5, at::kLong);
  const at::Tensor fused = testing::sample({5, 6, 8}, at::kFloat, 1);
  const at::Tensor part = fused.slice(1, 2, 4);
  EXPECT_TRUE(at::equal(rope(part, used.cos_PE, used.sin_PE, positions),
                        rope(part.contiguous(), used.cos_PE, used.sin_PE, positions)));
}

// Rotated by one op, queries and keys equal, bit for bit, queries and keys that are rotated one by
// one. So do the gradients, even if one output is not used.
TEST(Rope, QueriesAndKeysTogetherAreEachByItself) {
  const at::Tensor angles = testing::sample({20, 8}, at::kFloat, 3) * 3;
  const at::Tensor cos = angles.cos(), sin = angles.sin(), positions = at::arange(7) * 2;
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const bool uses_keys : {true, false}) {
      const auto run = [&](bool together) {
        const at::Tensor q = testing::sample({7, 4, 16}, dtype, 1).requires_grad_();
        const at::Tensor k = testing::sample({7, 2, 16}, dtype, 2).requires_grad_();
        const RotatedHeads rotated =
            together ? rope(RotatedHeads{q, k}, cos, sin, positions)
                     : RotatedHeads{rope(q, cos, sin, positions), rope(k, cos, sin, positions)};
        at::Tensor sum = rotated.q_THE.square().sum();
        if (uses_keys) sum = sum + rotated.k_TKE.square().sum();
        sum.backward();
        return std::vector<at::Tensor>{rotated.q_THE, rotated.k_TKE, q.grad(), k.grad()};
      };
      const auto found = run(true), wanted = run(false);
      for (size_t at = 0; at < wanted.size(); ++at) {
        ASSERT_EQ(found[at].defined(), wanted[at].defined()) << at;
        if (!wanted[at].defined()) continue;
        EXPECT_TRUE(at::equal(found[at], wanted[at])) << at << dtype;
      }
    }
}

}  // namespace
}  // namespace convoy::kernels
