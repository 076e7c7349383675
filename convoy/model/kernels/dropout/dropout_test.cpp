// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/dropout/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/model/kernels/dropout/dropout_ops.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

constexpr uint64_t kKey = 0x123456789abcdef0;

TEST(Dropout, DropsTheShareAskedForAndScalesTheRest) {
  for (const double p : {0.05, 0.5, 0.9}) {
    constexpr int64_t kCount = 1 << 20;
    const at::Tensor y = drop(at::ones({kCount}), p, kKey);
    const double dropped = y.eq(0).sum().item<double>() / kCount;
    EXPECT_NEAR(dropped, p, 5 * std::sqrt(p * (1 - p) / kCount));
    EXPECT_FLOAT_EQ(y.max().item<float>(), static_cast<float>(1 / (1 - p)));
  }
}

// The masks of neighbouring elements, of rows of any width and of two keys are independent.
TEST(Dropout, MasksAreUncorrelated) {
  constexpr int64_t kCount = 1 << 20;
  const auto signs = [](uint64_t key) { return drop(at::ones({kCount}), 0.5, key) - 1; };
  const at::Tensor first = signs(kKey);
  const double bound = 5 / std::sqrt(static_cast<double>(kCount));
  for (const int64_t lag : {1, 2, 16, 64, 512, 896, 1000, 1024, 65536})
    EXPECT_LT(std::abs((first.narrow(0, 0, kCount - lag) * first.narrow(0, lag, kCount - lag))
                           .mean()
                           .item<double>()),
              bound)
        << lag;
  for (const uint64_t other : {kKey + 1, kKey ^ (uint64_t{1} << 32), kKey ^ (uint64_t{1} << 63)})
    EXPECT_LT(std::abs((first * signs(other)).mean().item<double>()), bound) << other;
}

TEST(Dropout, EveryTableDropsTheSameElements) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = testing::sample({37, 129}, dtype, 3);
    const at::Tensor found = drop(x, 0.3, kKey);
    const CpuTableOverride aten(aten_op_table());
    EXPECT_TRUE(at::equal(drop(x, 0.3, kKey), found));
  }
}

TEST(Dropout, GradientIsDroppedAlike) {
  const at::Tensor x = testing::sample({33, 7}, at::kFloat, 1).requires_grad_();
  const at::Tensor grad = testing::sample({33, 7}, at::kFloat, 2);
  const at::Tensor y = dropout(x, 0.4, kKey);
  EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {x}, {grad})[0], drop(grad, 0.4, kKey)));
  EXPECT_TRUE(dropout(x, 0.0, kKey).is_same(x));
}

TEST(Dropout, WordsBeyondThirtyTwoBitsDiffer) {
  const DropRule rule{.key_low = 1, .key_high = 2};
  int64_t equal = 0;
  for (uint32_t low = 0; low < 1000; ++low)
    equal += (drop_hash(rule, low, 0) >> 31) == (drop_hash(rule, low, 1) >> 31);
  EXPECT_NEAR(static_cast<double>(equal), 500, 80);
}

}  // namespace
}  // namespace convoy::kernels
