// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rms_norm/rms_norm.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

constexpr double kEpsilon = 1e-6;

testing::OpErrors norm_errors_of(at::IntArrayRef sizes, at::ScalarType dtype, NormOrder order,
                                 double planted = 0) {
  const auto op = [&](const Tensors& in) { return rms_norm(in[0], in[1], kEpsilon, order); };
  const auto reference = [&](const Tensors& in) {
    return reference::rms_norm(in[0], in[1], kEpsilon + planted, order);
  };
  return testing::compare(
      op, reference, {testing::sample(sizes, dtype, 1), testing::sample({sizes.back()}, dtype, 2)});
}

TEST(RmsNorm, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (auto order : {NormOrder::CastThenScale, NormOrder::ScaleByOnePlusThenCast}) {
      for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
               {0, 8}, {1, 5}, {1, 17}, {3, 64}, {131, 33}, {5, 7, 48}}) {
        EXPECT_LT(norm_errors_of(sizes, dtype, order).worst(), testing::tolerance(dtype, 131))
            << sizes << dtype;
      }
    }
  }
}

TEST(RmsNorm, PlantedErrorIsSeen) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_GT(norm_errors_of({9, 33}, dtype, NormOrder::CastThenScale, 0.1).worst(),
              testing::tolerance(dtype, 33));
  }
}

TEST(RmsNorm, Bf16RoundsInTheOrderOfTheFamily) {
  const at::Tensor x = testing::sample({4, 64}, at::kBFloat16, 3);
  const at::Tensor weight = testing::sample({64}, at::kBFloat16, 4);
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor normed = wide * at::rsqrt(wide.square().mean(-1, true) + kEpsilon);
  EXPECT_TRUE(at::equal(rms_norm(x, weight, kEpsilon, NormOrder::CastThenScale),
                        normed.to(at::kBFloat16) * weight));
  EXPECT_TRUE(at::equal(rms_norm(x, weight, kEpsilon, NormOrder::ScaleByOnePlusThenCast),
                        (normed * (1 + weight.to(at::kFloat))).to(at::kBFloat16)));
}

// The op rounds the sum before it takes the norm, as two separate ops do.
TEST(RmsNorm, OfASumEqualsTheNormOfTheStoredSum) {
  const at::NoGradGuard no_grad;
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (auto order : {NormOrder::CastThenScale, NormOrder::ScaleByOnePlusThenCast}) {
      for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
               {0, 8}, {1, 5}, {9, 64}, {3, 1032}, {2, 1033}, {5, 7, 48}}) {
        const at::Tensor x = testing::sample(sizes, dtype, 1);
        const at::Tensor added = testing::sample(sizes, dtype, 2);
        const at::Tensor weight = testing::sample({sizes.back()}, dtype, 3);
        const AddedNorm found = add_rms_norm(x, added, weight, kEpsilon, order);
        EXPECT_TRUE(at::equal(found.sum, x + added)) << sizes << dtype;
        EXPECT_TRUE(at::equal(found.norm, rms_norm(x + added, weight, kEpsilon, order)))
            << sizes << dtype;
      }
    }
  }
}

TEST(RmsNorm, OfNothingAddedIsTheNormOfX) {
  const at::Tensor x = testing::sample({4, 8}, at::kFloat, 1);
  const AddedNorm found =
      add_rms_norm(x, {}, at::ones({8}), kEpsilon, NormOrder::ScaleByOnePlusThenCast);
  EXPECT_TRUE(found.sum.is_same(x));
  EXPECT_TRUE(at::equal(found.norm,
                        rms_norm(x, at::ones({8}), kEpsilon, NormOrder::ScaleByOnePlusThenCast)));
}

TEST(RmsNorm, OfASumHasTheGradientsOfItsSteps) {
  const auto gradients = [](bool joined) {
    testing::Tensors inputs;
    for (uint64_t seed = 0; seed < 2; ++seed)
      inputs.push_back(testing::sample({4, 8}, at::kFloat, seed).requires_grad_(true));
    const at::Tensor weight = testing::sample({8}, at::kFloat, 3).requires_grad_(true);
    inputs.push_back(weight);
    AddedNorm found;
    if (joined) {
      found = add_rms_norm(inputs[0], inputs[1], weight, kEpsilon, NormOrder::CastThenScale);
    } else {
      found.sum = inputs[0] + inputs[1];
      found.norm = rms_norm(found.sum, weight, kEpsilon, NormOrder::CastThenScale);
    }
    const at::Tensor cotangent = testing::sample({4, 8}, at::kFloat, 4);
    return torch::autograd::grad({found.sum, found.norm}, inputs, {cotangent, cotangent});
  };
  const auto found = gradients(true), wanted = gradients(false);
  for (size_t at = 0; at < found.size(); ++at) EXPECT_TRUE(at::equal(found[at], wanted[at]));
}

TEST(RmsNorm, WithoutGradNothingIsRecorded) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = testing::sample({4, 8}, at::kFloat, 3).requires_grad_(true);
  EXPECT_FALSE(rms_norm(x, at::ones({8}), kEpsilon, NormOrder::CastThenScale).requires_grad());
}

TEST(RmsNorm, FrozenWeightGetsNoGradient) {
  const at::Tensor x = testing::sample({4, 8}, at::kFloat, 3).requires_grad_(true);
  const at::Tensor weight = at::ones({8});
  rms_norm(x, weight, kEpsilon, NormOrder::CastThenScale).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
}

}  // namespace
}  // namespace convoy::kernels
