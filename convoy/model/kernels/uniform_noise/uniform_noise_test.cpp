// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/uniform_noise/uniform_noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace convoy::kernels {
namespace {

constexpr int64_t kWidth = 64;
constexpr double kAlpha = 5;

TEST(RowNoise, IsUniformWithinTheBoundOfEachRow) {
  const RowIndex rows({0, 100, 100, 1000});
  const at::Tensor noise = add_row_noise(at::zeros({1000, kWidth}), rows, kAlpha, 11);
  for (const auto& [begin, end] : {std::pair{0, 100}, {100, 1000}}) {
    // The bound of transformers.integrations.neftune: alpha / sqrt(tokens * width).
    const double bound = kAlpha / std::sqrt(static_cast<double>((end - begin) * kWidth));
    const at::Tensor part = noise.narrow(0, begin, end - begin).to(at::kDouble).div(bound);
    const auto count = static_cast<double>(part.numel());
    EXPECT_LE(part.abs().max().item<double>(), 1.0);
    EXPECT_GT(part.abs().max().item<double>(), 1.0 - 20 / count);
    // The moments of uniform numbers are E x = 0, E x^2 = 1/3 and E x^4 = 1/5; the bounds are five
    // standard errors.
    EXPECT_NEAR(part.mean().item<double>(), 0, 5 * std::sqrt(1.0 / 3 / count));
    EXPECT_NEAR(part.square().mean().item<double>(), 1.0 / 3, 5 * std::sqrt(4.0 / 45 / count));
    EXPECT_NEAR(part.pow(4).mean().item<double>(), 1.0 / 5, 5 * std::sqrt(16.0 / 225 / count));
  }
}

TEST(RowNoise, IsAFunctionOfItsKey) {
  const at::Tensor x = at::ones({7, kWidth});
  const RowIndex rows({0, 7});
  EXPECT_TRUE(at::equal(add_row_noise(x, rows, kAlpha, 3), add_row_noise(x, rows, kAlpha, 3)));
  EXPECT_FALSE(at::equal(add_row_noise(x, rows, kAlpha, 3), add_row_noise(x, rows, kAlpha, 4)));
}

TEST(RowNoise, IsRoundedOnceAndPassesGradientsOn) {
  const RowIndex rows({0, 9});
  const at::Tensor x = at::rand({9, kWidth}).to(at::kBFloat16).requires_grad_(true);
  const at::Tensor y = add_row_noise(x, rows, kAlpha, 3);
  EXPECT_TRUE(at::equal(
      y.detach(), add_row_noise(x.detach().to(at::kFloat), rows, kAlpha, 3).to(at::kBFloat16)));
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::ones_like(x)));
}

TEST(RowNoise, NothingIsAddedToNothing) {
  EXPECT_EQ(add_row_noise(at::zeros({0, 4}), RowIndex({0}), kAlpha, 1).size(0), 0);
}

}  // namespace
}  // namespace convoy::kernels
