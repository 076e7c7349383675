// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/simd/simd_kernels.h"

#include <gtest/gtest.h>

#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

// Every level this machine runs must agree with double arithmetic, not only the one that is chosen.
template <class Element>
void check_multiply(CpuIsa isa, GemmShape shape) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const at::Tensor a = testing::sample({shape.m, shape.k}, dtype, 1);
  const at::Tensor b = testing::sample({shape.k, shape.n}, dtype, 2);
  const at::Tensor b_t = b.t().contiguous();
  const auto& loops = simd_kernels<Element>(isa);
  std::vector<Element> by_rows(packed_elements<Element>(shape));
  std::vector<Element> by_columns(by_rows.size());
  std::vector<Element> by_floats(by_rows.size());
  const at::Tensor wide_b = b.to(at::kFloat);
  loops.pack_rows(b.const_data_ptr<Element>(), shape.n, shape, by_rows.data());
  loops.pack_columns(b_t.const_data_ptr<Element>(), shape.k, shape, by_columns.data());
  loops.pack_float_rows(wide_b.const_data_ptr<float>(), shape.n, shape, by_floats.data());
  EXPECT_EQ(std::memcmp(by_rows.data(), by_columns.data(), by_rows.size() * sizeof(Element)), 0);
  EXPECT_EQ(std::memcmp(by_rows.data(), by_floats.data(), by_rows.size() * sizeof(Element)), 0);
  const int64_t stride = round_up(shape.n, kPanelColumns);
  const at::Tensor c = at::ones({shape.m, stride});
  const PackedView<Element> view{by_rows.data(), panel_elements<Element>(shape.k)};
  loops.multiply(a.const_data_ptr<Element>(), shape.k, view, c.mutable_data_ptr<float>(), stride,
                 shape, true);
  const at::Tensor wanted = at::matmul(a.to(at::kDouble), b.to(at::kDouble)) + 1;
  EXPECT_LT(testing::relative_error(c.slice(1, 0, shape.n), wanted),
            testing::tolerance(at::kFloat, shape.k))
      << cpu_isa_name(isa) << " " << shape.m << "x" << shape.n << "x" << shape.k;
}

TEST(SimdKernels, MultiplyOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (GemmShape shape :
         {GemmShape{1, 1, 1}, {8, 32, 64}, {17, 33, 5}, {5, 70, 131}, {64, 96, 2}}) {
      check_multiply<float>(isa, shape);
      check_multiply<at::BFloat16>(isa, shape);
    }
  }
}

TEST(SimdKernels, ExponentialOnEveryLevel) {
  const at::Tensor x = at::linspace(-100, 85, 4001);
  for (CpuIsa isa : usable_cpu_isas()) {
    const at::Tensor y = at::empty_like(x);
    simd_kernels<float>(isa).softmax_row(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(),
                                         x.numel(), 0.0f);
    const at::Tensor wanted = x.to(at::kDouble).exp();
    // Below the smallest normal number the result is 0.
    const at::Tensor error = (y.to(at::kDouble) - wanted).abs() / wanted.clamp_min(2e-38);
    EXPECT_LT(error.masked_select(x.gt(-87.3)).max().item<double>(), 3e-7) << cpu_isa_name(isa);
    EXPECT_EQ(y.masked_select(x.lt(-87.4)).abs().max().item<float>(), 0.0f);
  }
}

TEST(SimdKernels, RoundingToBf16EqualsLibTorch) {
  const at::Tensor x = at::cat(
      {testing::sample({1000}, at::kFloat, 1) * 1e3,
       at::tensor({0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.00390625f, 1.01171875f, 3.4e38f})});
  const at::Tensor wanted = x.to(at::kBFloat16);
  for (CpuIsa isa : usable_cpu_isas()) {
    const at::Tensor y = at::empty_like(wanted);
    simd_kernels<at::BFloat16>(isa).round_row(x.const_data_ptr<float>(),
                                              y.mutable_data_ptr<at::BFloat16>(), x.numel(), 1.0f);
    EXPECT_TRUE(at::allclose(y.to(at::kFloat), wanted.to(at::kFloat), 0, 0, true))
        << cpu_isa_name(isa);
  }
}

TEST(SimdKernels, SumOfSquaresOnEveryLevel) {
  const at::Tensor x = testing::sample({1001}, at::kFloat, 1);
  for (CpuIsa isa : usable_cpu_isas()) {
    EXPECT_NEAR(simd_kernels<float>(isa).sum_of_squares(x.const_data_ptr<float>(), x.numel()),
                x.to(at::kDouble).square().sum().item<double>(), 1e-9);
  }
}

}  // namespace
}  // namespace convoy::kernels
