// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/ops/autograd.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

// Computes x^2 as an op that is cheap enough to compute its output again in backward.
at::Tensor cheap_square(const at::Tensor& x, int& runs) {
  const at::NoGradGuard no_grad;
  const at::Tensor y = x.square();
  RecomputedOutputs::add(y, {x}, [&runs](const std::vector<at::Tensor>& from) {
    ++runs;
    return from[0].square();
  });
  return with_backward(
      y, {.op = "cheap_square",
          .inputs = {x},
          .saved = {x},
          .gradients = [](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                          const std::vector<bool>&) -> std::vector<at::Tensor> {
            return {grad * saved[0] * 2};
          }});
}

at::Tensor kept_square(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return with_backward(
      x.square(), {.op = "kept_square",
                   .inputs = {x},
                   .saved = {x},
                   .gradients = [](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                   const std::vector<bool>&) -> std::vector<at::Tensor> {
                     return {grad * saved[0] * 2};
                   }});
}

struct Squares {
  at::Tensor gradient;
  bool was_kept = true;
  int runs = 0;
};

// Adds x^4 over all elements and over a part of them. Returns the gradient, and whether the output
// of the cheap op was kept.
Squares fourth_powers(bool recomputes) {
  Squares result;
  const at::Tensor x = testing::sample({4, 6}, at::kFloat, 1).requires_grad_();
  at::Tensor sum;
  c10::weak_intrusive_ptr<c10::StorageImpl> memory(c10::intrusive_ptr<c10::StorageImpl>{});
  {
    std::optional<RecomputedOutputs> recomputed;
    if (recomputes) recomputed.emplace();
    const at::Tensor y = cheap_square(x, result.runs);
    EXPECT_EQ(RecomputedOutputs::contain(y), recomputes);
    memory = y.storage().getWeakStorageImpl();
    sum = kept_square(y).sum() + kept_square(y.narrow(0, 1, 2)).sum();
  }
  result.was_kept = !memory.expired();
  sum.backward();
  result.gradient = x.grad();
  EXPECT_TRUE(memory.expired() || !recomputes);
  return result;
}

TEST(RecomputedOutputs, AreComputedOnceForAllThatUseThem) {
  const Squares kept = fourth_powers(false), recomputed = fourth_powers(true);
  EXPECT_TRUE(kept.was_kept);
  EXPECT_EQ(kept.runs, 0);
  EXPECT_FALSE(recomputed.was_kept);
  EXPECT_EQ(recomputed.runs, 1);
  EXPECT_TRUE(at::equal(recomputed.gradient, kept.gradient));
}

TEST(JointBackward, OutputsWithoutAGradientAreLeftOut) {
  const at::Tensor x = testing::sample({3}, at::kFloat, 1).requires_grad_();
  std::vector<bool> came_back;
  const auto doubled_and_tripled = [&] {
    const at::NoGradGuard no_grad;
    return with_backward({x * 2, x * 3}, {.op = "joint",
                                          .inputs = {x},
                                          .saved = {},
                                          .gradients = [&](const std::vector<at::Tensor>& grads,
                                                           const std::vector<at::Tensor>&,
                                                           const std::vector<bool>&) {
                                            at::Tensor gradient = at::zeros({3});
                                            came_back = {grads[0].defined(), grads[1].defined()};
                                            if (grads[0].defined())
                                              gradient = gradient + grads[0] * 2;
                                            if (grads[1].defined())
                                              gradient = gradient + grads[1] * 3;
                                            return std::vector<at::Tensor>{gradient};
                                          }});
  };
  doubled_and_tripled()[1].sum().backward();
  EXPECT_EQ(came_back, std::vector<bool>({false, true}));
  EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 3.0f)));
  const std::vector<at::Tensor> both = doubled_and_tripled();
  (both[0] + both[1]).sum().backward();
  EXPECT_EQ(came_back, std::vector<bool>({true, true}));
  EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 8.0f)));
}

}  // namespace
}  // namespace convoy::kernels
