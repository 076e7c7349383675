// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/frozen_linear/frozen_linear.h"

#include <gtest/gtest.h>

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
