// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_activation/gated_activation.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

testing::OpErrors gated_errors_of(at::IntArrayRef sizes, at::ScalarType dtype,
                                  Activation activation, Activation expected) {
  const auto op = [&](const Tensors& in) { return gated_activation(in[0], in[1], activation); };
  const auto reference = [&](const Tensors& in) {
    return reference::gated_activation(in[0], in[1], expected);
  };
  return testing::compare(op, reference,
                          {testing::sample(sizes, dtype, 1) * 3, testing::sample(sizes, dtype, 2)});
}

TEST(GatedActivation, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (auto activation : {Activation::Silu, Activation::GeluTanh, Activation::Sigmoid}) {
      for (const std::vector<int64_t>& sizes :
           std::vector<std::vector<int64_t>>{{0, 8}, {1, 1}, {7, 33}, {64, 1408}}) {
        EXPECT_LT(gated_errors_of(sizes, dtype, activation, activation).worst(),
                  testing::tolerance(dtype, 1))
            << sizes;
      }
    }
  }
}

TEST(GatedActivation, TheOtherActivationIsSeen) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_GT(gated_errors_of({7, 33}, dtype, Activation::Silu, Activation::GeluTanh).worst(),
              testing::tolerance(dtype, 1));
    EXPECT_GT(gated_errors_of({7, 33}, dtype, Activation::Sigmoid, Activation::Silu).worst(),
              testing::tolerance(dtype, 1));
  }
}

TEST(GatedActivation, LargeInputsStayFinite) {
  const at::Tensor gate =
      at::tensor({-1e4f, -100.0f, -89.0f, 0.0f, 89.0f, 100.0f, 1e4f}).requires_grad_(true);
  const at::Tensor up = at::ones({7});
  for (auto activation : {Activation::Silu, Activation::GeluTanh}) {
    const at::Tensor y = gated_activation(gate, up, activation);
    EXPECT_TRUE(at::isfinite(y).all().item<bool>());
    EXPECT_TRUE(at::isfinite(torch::autograd::grad({y.sum()}, {gate})[0]).all().item<bool>());
    EXPECT_FLOAT_EQ(y[6].item<float>(), 1e4f);
    EXPECT_NEAR(y[0].item<float>(), 0.0f, 1e-30f);
  }
}

TEST(GatedActivation, TakesColumnsOfOneProduct) {
  const at::NoGradGuard no_grad;
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor both = testing::sample({5, 2 * 24}, dtype, 1);
    const at::Tensor gate = both.narrow(1, 0, 24), up = both.narrow(1, 24, 24);
    const at::Tensor found = gated_activation(gate, up, Activation::GeluTanh);
    EXPECT_TRUE(found.is_contiguous());
    EXPECT_LT(testing::relative_error(found, gated_activation(gate.contiguous(), up.contiguous(),
                                                              Activation::GeluTanh)),
              testing::tolerance(dtype, 1));
  }
}

}  // namespace
}  // namespace convoy::kernels
