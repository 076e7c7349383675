// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/frozen_linear/frozen_linear.h"

#include <gtest/gtest.h>

#include "convoy/kernels/ops/op_table.h"
#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

testing::OpErrors errors_of(at::IntArrayRef sizes, int64_t outputs, bool biased,
                            at::ScalarType dtype, double planted = 0) {
  const at::Tensor weight = testing::sample({outputs, sizes.back()}, dtype, 2);
  const at::Tensor bias = biased ? testing::sample({outputs}, dtype, 3) : at::Tensor();
  const FrozenLinear linear(weight, bias);
  const auto op = [&](const Tensors& in) { return linear.forward(in[0]); };
  const auto reference = [&](const Tensors& in) {
    at::Tensor y = at::matmul(in[0], weight.to(at::kDouble).t() * (1 + planted));
    return biased ? y + bias.to(at::kDouble) : y;
  };
  return testing::compare(op, reference, {testing::sample(sizes, dtype, 1)});
}

TEST(FrozenLinear, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (bool biased : {false, true}) {
      for (const std::vector<int64_t>& sizes :
           std::vector<std::vector<int64_t>>{{0, 8}, {1, 7}, {33, 64}, {2, 5, 48}}) {
        EXPECT_LT(errors_of(sizes, 35, biased, dtype).worst(), testing::tolerance(dtype, 64))
            << sizes << dtype;
      }
    }
  }
}

TEST(FrozenLinear, PlantedErrorIsSeen) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_GT(errors_of({33, 64}, 35, true, dtype, 0.05).worst(), testing::tolerance(dtype, 64));
  }
}

TEST(FrozenLinear, InputGradientIsWhatBackwardComputes) {
  const FrozenLinear linear(testing::sample({35, 64}, at::kBFloat16, 2), {});
  const at::Tensor x = testing::sample({9, 64}, at::kBFloat16, 1).requires_grad_(true);
  const at::Tensor y = linear.forward(x);
  const at::Tensor grad = testing::sample({9, 35}, at::kBFloat16, 4);
  EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {x}, {grad})[0], linear.input_gradient(grad)));
}

TEST(FrozenLinear, AddsAProduct) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = testing::sample({35, 64}, dtype, 2);
    const FrozenLinear linear(weight, {});
    const at::Tensor left = testing::sample({9, 5}, dtype, 3);
    const at::Tensor right = testing::sample({35, 5}, dtype, 4);
    const at::Tensor x = testing::sample({9, 64}, dtype, 1);
    const at::Tensor wanted = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t()) +
                              at::matmul(left.to(at::kDouble), right.to(at::kDouble).t());
    EXPECT_LT(testing::relative_error(linear.product(x, {left, right.t()}), wanted),
              testing::tolerance(dtype, 64));
    const at::Tensor back = testing::sample({5, 64}, dtype, 5);
    const at::Tensor grad = testing::sample({9, 35}, dtype, 6);
    const at::Tensor wanted_x = at::matmul(grad.to(at::kDouble), weight.to(at::kDouble)) +
                                at::matmul(left.to(at::kDouble), back.to(at::kDouble));
    EXPECT_LT(testing::relative_error(linear.input_gradient(grad, {left, back}), wanted_x),
              testing::tolerance(dtype, 64));
  }
}

// What CPUs with matrix units run must stay right on those without.
TEST(FrozenLinear, OneDnnEqualsReference) {
  OpTable with_onednn = aten_op_table();
  with_onednn.frozen_linear = kFrozenLinearOneDnn;
  const CpuTableOverride chosen(with_onednn);
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_LT(errors_of({33, 64}, 35, true, dtype).worst(), testing::tolerance(dtype, 64)) << dtype;
    EXPECT_LT(errors_of({0, 64}, 35, true, dtype).worst(), testing::tolerance(dtype, 64)) << dtype;
  }
}

TEST(FrozenLinear, BackwardOutlivesTheMap) {
  const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1).requires_grad_(true);
  at::Tensor y;
  {
    const FrozenLinear linear(testing::sample({35, 64}, at::kFloat, 2), {});
    y = linear.forward(x);
  }
  y.sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace convoy::kernels
