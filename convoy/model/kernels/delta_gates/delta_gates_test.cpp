// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/delta_gates/delta_gates.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

// Joins both gates, so that one comparison covers them.
at::Tensor both(const DeltaGates& gates) { return at::cat({gates.log_decay_TH, gates.beta_TH}, 1); }

at::Tensor reference(const Tensors& in, double linear_from = 20) {
  const at::Tensor decay = -in[2].exp() * at::softplus(in[0] + in[3], 1, linear_from);
  return at::cat({decay, in[1].sigmoid()}, 1);
}

Tensors inputs(int64_t tokens, int64_t heads, at::ScalarType dtype) {
  return {testing::sample({tokens, heads}, dtype, 1) * 3,
          testing::sample({tokens, heads}, dtype, 2), testing::sample({heads}, dtype, 3),
          testing::sample({heads}, dtype, 4)};
}

at::Tensor gates_of(const Tensors& in) { return both(delta_gates(in[0], in[1], in[2], in[3])); }

TEST(DeltaGates, EqualReference) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [tokens, heads] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {7, 3}, {90, 32}})
      EXPECT_LT(testing::compare(
                    gates_of, [](const Tensors& in) { return reference(in); },
                    inputs(tokens, heads, dtype))
                    .worst(),
                testing::tolerance(dtype, tokens))
          << dtype << " " << tokens << " x " << heads;
}

TEST(DeltaGates, AnotherSoftplusIsSeen) {
  EXPECT_GT(
      testing::compare(
          gates_of, [](const Tensors& in) { return reference(in, 1); }, inputs(90, 32, at::kFloat))
          .worst(),
      testing::tolerance(at::kFloat, 90));
}

TEST(DeltaGates, ExtremeMapsStayFinite) {
  const at::Tensor map = at::tensor({-1e4F, -100.0F, 0.0F, 100.0F, 1e4F}).view({5, 1});
  const at::Tensor a = map.clone().requires_grad_(true), b = map.clone().requires_grad_(true);
  const at::Tensor gates = both(delta_gates(a, b, at::full({1}, 2.0F), at::full({1}, 1.0F)));
  EXPECT_TRUE(at::isfinite(gates).all().item<bool>());
  EXPECT_LE(gates.select(1, 0).max().item<float>(), 0.0F);
  for (const at::Tensor& gradient : torch::autograd::grad({gates.sum()}, {a, b}))
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
}

TEST(DeltaGates, TakeColumnsOfOneProduct) {
  const at::Tensor wide = testing::sample({9, 10}, at::kFloat, 1);
  const Tensors in = {wide.narrow(1, 0, 5), wide.narrow(1, 5, 5),
                      testing::sample({5}, at::kFloat, 3), testing::sample({5}, at::kFloat, 4)};
  EXPECT_TRUE(
      at::equal(gates_of(in), gates_of({in[0].contiguous(), in[1].contiguous(), in[2], in[3]})));
}

}  // namespace
}  // namespace convoy::kernels
