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
    for (GemmShape shape : {GemmShape{1, 1, 1},
                            {8, 32, 64},
                            {17, 33, 5},
                            {5, 70, 131},
                            {64, 96, 2},
                            {11, 16, 9},
                            {9, 44, 8}}) {
      check_multiply<float>(isa, shape);
      check_multiply<at::BFloat16>(isa, shape);
    }
  }
}

template <class Element>
void check_transpose(CpuIsa isa, int64_t rows, int64_t columns) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const at::Tensor from = testing::sample({rows, columns + 3}, dtype, 1);
  const at::Tensor to = at::full({columns, rows + 5}, 7.0, dtype);
  simd_kernels<Element>(isa).transpose(from.const_data_ptr<Element>(), columns + 3, {rows, columns},
                                       to.mutable_data_ptr<Element>(), rows + 5);
  EXPECT_TRUE(at::equal(to.slice(1, 0, rows), from.slice(1, 0, columns).t()))
      << cpu_isa_name(isa) << " " << rows << "x" << columns;
  EXPECT_TRUE(to.slice(1, rows).eq(7.0).all().item<bool>());
}

TEST(SimdKernels, TransposeOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {32, 16}, {64, 48}, {37, 35}, {16, 100}}) {
      check_transpose<float>(isa, rows, columns);
      check_transpose<at::BFloat16>(isa, rows, columns);
    }
  }
}

template <class Element>
void check_query_loops(CpuIsa isa, int64_t queries, int64_t keys, int64_t features) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const at::Tensor q = testing::sample({queries, features}, dtype, 1);
  const at::Tensor k = testing::sample({keys, 2, features}, dtype, 2);  // every other row is read
  const at::Tensor weights = testing::sample({queries, keys}, at::kFloat, 3);
  const at::Tensor scores = at::zeros({queries, keys});
  const at::Tensor sums = at::zeros({queries, features});
  const QueryShape shape{.queries = queries,
                         .query_stride = features,
                         .keys = keys,
                         .key_stride = 2 * features,
                         .features = features,
                         .score_stride = keys};
  const auto& loops = simd_kernels<Element>(isa);
  loops.query_scores(q.const_data_ptr<Element>(), k.const_data_ptr<Element>(),
                     scores.mutable_data_ptr<float>(), shape);
  loops.query_sums(weights.const_data_ptr<float>(), k.const_data_ptr<Element>(),
                   sums.mutable_data_ptr<float>(), shape);
  const at::Tensor wide_k = k.select(1, 0).to(at::kDouble);
  EXPECT_LT(testing::relative_error(scores, at::matmul(q.to(at::kDouble), wide_k.t())),
            testing::tolerance(at::kFloat, features))
      << cpu_isa_name(isa) << " " << queries << "x" << keys << "x" << features;
  EXPECT_LT(testing::relative_error(sums, at::matmul(weights.to(at::kDouble), wide_k)),
            testing::tolerance(at::kFloat, keys))
      << cpu_isa_name(isa) << " " << queries << "x" << keys << "x" << features;
}

TEST(SimdKernels, QueryLoopsOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const auto& [queries, keys, features] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {1, 16, 64}, {4, 37, 64}, {7, 5, 128}, {5, 100, 33}, {2, 18, 80}}) {
      check_query_loops<float>(isa, queries, keys, features);
      check_query_loops<at::BFloat16>(isa, queries, keys, features);
    }
  }
}

TEST(SimdKernels, LogitLoopsOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const int64_t count : {1, 15, 16, 100}) {
      at::Tensor logits = testing::sample({count}, at::kFloat, 4);
      const auto& loops = simd_kernels<float>(isa);
      const LogitRange range = loops.logit_range(logits.const_data_ptr<float>(), count);
      EXPECT_EQ(range.highest, logits.max().item<float>());
      EXPECT_EQ(range.lowest, logits.min().item<float>());
      EXPECT_TRUE(range.all_numbers);
      const at::Tensor weights = at::zeros({count});
      std::vector<uint16_t> buckets(static_cast<size_t>(count));
      loops.weigh_logits(logits.const_data_ptr<float>(), count, {range.highest, 2.0f, 10.0f, 5.0f},
                         weights.mutable_data_ptr<float>(), buckets.data());
      EXPECT_TRUE(at::allclose(weights, ((logits - range.highest) * 2).exp(), 1e-6, 0));
      const at::Tensor wanted = ((range.highest - logits) * 10).clamp_max(5).to(at::kLong);
      for (int64_t at = 0; at < count; ++at)
        EXPECT_EQ(buckets[static_cast<size_t>(at)], wanted[at].item<int64_t>());
      EXPECT_NEAR(loops.sum(weights.const_data_ptr<float>(), count), weights.sum().item<float>(),
                  1e-4);
      logits[count - 1] = NAN;
      EXPECT_FALSE(loops.logit_range(logits.const_data_ptr<float>(), count).all_numbers);
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
