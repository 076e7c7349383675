// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/simd_kernels.h"

#include <gtest/gtest.h>

#include <array>

#include "convoy/core/base/error.h"
#include "kernel_checks/op_check.h"

namespace convoy::kernels {
namespace {

// Every instruction set that this machine has must agree with double precision, not only the chosen
// one.
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

TEST(SimdKernels, ABuildOfOneLevelSaysHowToGetTheOthers) {
  constexpr unsigned kAvx2Alone = 2;
  EXPECT_NO_THROW(require_compiled(CpuIsa::Avx2, kAvx2Alone));
  for (const CpuIsa isa : {CpuIsa::Baseline, CpuIsa::Avx512, CpuIsa::Amx}) {
    try {
      require_compiled(isa, kAvx2Alone);
      ADD_FAILURE() << cpu_isa_name(isa);
    } catch (const ConfigError& error) {
      EXPECT_EQ(
          error.sentence(),
          fmt::format("the loops of {} are needed, and this build has those of avx2 alone (run "
                      "`./run build`: it compiles the loops of every CPU)",
                      cpu_isa_name(isa)));
    }
  }
}

TEST(SimdKernels, MultiplyOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (GemmShape shape : {GemmShape{1, 1, 1},
                            {8, 32, 64},
                            {17, 33, 5},
                            {5, 70, 131},
                            {64, 96, 2},
                            {11, 16, 9},
                            {9, 44, 8},
                            {3, 40, 0},
                            {130, 70, 1100}}) {
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

TEST(SimdKernels, LogitLoopsOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const int64_t count : {1, 15, 16, 100, 3001}) {
      at::Tensor logits = testing::sample({count}, at::kFloat, 4);
      const float* const values = logits.const_data_ptr<float>();
      const auto& loops = simd_kernels<float>(isa);
      const LogitRange range = loops.logit_range(values, count);
      EXPECT_EQ(range.highest, logits.max().item<float>());
      EXPECT_EQ(range.lowest, logits.min().item<float>());
      EXPECT_TRUE(range.all_numbers);
      logits[count / 3] = logits[count - 1] = 2.5f;
      const LargestLogit largest = loops.largest_logit(values, count);
      EXPECT_EQ(largest.value, 2.5f);
      EXPECT_EQ(largest.index, count / 3);
      EXPECT_TRUE(largest.all_numbers);
      const float highest = logits.max().item<float>();
      const at::Tensor weights = at::zeros({count});
      auto* const weight = weights.mutable_data_ptr<float>();
      loops.weigh_logits(values, count, highest, 2.0f, weight);
      EXPECT_TRUE(at::allclose(weights, ((logits - highest) * 2).exp(), 1e-6, 0));
      const double total = weights.to(at::kDouble).sum().item<double>();
      EXPECT_NEAR(loops.sum(weight, count), total, 1e-6 * total);

      const std::array<float, kLogitThresholds> thresholds{-1.0f, values[count / 2], 0.5f, 9.0f};
      std::array<LogitMass, kLogitThresholds> masses;
      loops.logit_mass(values, weight, count, thresholds.data(), masses.data());
      for (int64_t index = 0; index < kLogitThresholds; ++index) {
        const at::Tensor above = logits.ge(thresholds[index]);
        EXPECT_EQ(masses[index].count, above.sum().item<int64_t>());
        EXPECT_NEAR(masses[index].weight, weights.to(at::kDouble).mul(above).sum().item<double>(),
                    1e-6 * total);
      }
      std::vector<int32_t> ids(count + kLogitSlack);
      ids.resize(loops.find_logits(values, count, -0.5f, 0.5f, ids.data()));
      const at::Tensor wanted = logits.ge(-0.5f).logical_and(logits.lt(0.5f)).nonzero().flatten();
      EXPECT_EQ(ids, std::vector<int32_t>(wanted.const_data_ptr<int64_t>(),
                                          wanted.const_data_ptr<int64_t>() + wanted.size(0)));
      std::vector<float> some(count + kLogitSlack), of_them(count + kLogitSlack);
      const int64_t number =
          loops.compact_logits(values, weight, count, -0.5f, 0.5f, some.data(), of_them.data());
      ASSERT_EQ(number, wanted.size(0));
      for (int64_t at = 0; at < number; ++at) {
        EXPECT_EQ(some[at], values[ids[at]]);
        EXPECT_EQ(of_them[at], weight[ids[at]]);
      }
      const at::Tensor kept = weights * logits.ge(-0.5f) * weights.ge(0.1f);
      loops.keep_weights(values, count, -0.5f, 0.1f, weight);
      EXPECT_TRUE(at::equal(weights, kept));
      logits[count - 1] = NAN;
      EXPECT_FALSE(loops.logit_range(values, count).all_numbers);
      EXPECT_FALSE(loops.largest_logit(values, count).all_numbers);
    }
  }
}

template <class Element>
void check_widening(CpuIsa isa) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const at::Tensor values = testing::sample({101}, dtype, 5);
  const at::Tensor floats = at::empty({101});
  simd_kernels<Element>(isa).to_float(values.const_data_ptr<Element>(),
                                      floats.mutable_data_ptr<float>(), 101);
  EXPECT_TRUE(at::equal(floats, values.to(at::kFloat)));
}

TEST(SimdKernels, RowLoopsOnEveryLevel) {
  const at::Tensor from = testing::sample({37}, at::kFloat, 5);
  for (CpuIsa isa : usable_cpu_isas()) {
    const auto& loops = simd_kernels<float>(isa);
    at::Tensor to = testing::sample({37}, at::kFloat, 6);
    const at::Tensor product = to * from;
    loops.multiply_rows(from.const_data_ptr<float>(), to.mutable_data_ptr<float>(), 37);
    EXPECT_TRUE(at::equal(to, product));
    loops.blend_rows(from.const_data_ptr<float>(), 0.25f, to.mutable_data_ptr<float>(), 3.0f, 37);
    EXPECT_TRUE(at::allclose(to, product * 3 + from * 0.25, 1e-6, 1e-6));
  }
}

TEST(SimdKernels, WideningOnEveryLevelIsExact) {
  for (CpuIsa isa : usable_cpu_isas()) {
    check_widening<float>(isa);
    check_widening<at::BFloat16>(isa);
  }
}

// Deterministic generation needs this: the product of a row does not depend on the number of rows.
template <class Element>
void check_rows_alone(CpuIsa isa, int64_t k, int64_t n) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  constexpr int64_t kRows = 70;
  const at::Tensor a = testing::sample({kRows, k}, dtype, 1);
  const at::Tensor b = testing::sample({k, n}, dtype, 2);
  const auto& loops = simd_kernels<Element>(isa);
  std::vector<Element> packed(packed_elements<Element>({kRows, n, k}));
  loops.pack_rows(b.const_data_ptr<Element>(), n, {kRows, n, k}, packed.data());
  const PackedView<Element> view{packed.data(), panel_elements<Element>(k)};
  const int64_t stride = round_up(n, kPanelColumns);
  const auto product = [&](int64_t first, int64_t rows) {
    at::Tensor c = at::zeros({rows, stride});
    loops.multiply(a.const_data_ptr<Element>() + first * k, k, view, c.mutable_data_ptr<float>(),
                   stride, {rows, n, k}, false);
    return c.slice(1, 0, n);
  };
  const at::Tensor together = product(0, kRows);
  for (const int64_t rows : {1, 2, 5, 7, 8, 13, 17, 65})
    EXPECT_TRUE(at::equal(product(3, rows), together.slice(0, 3, 3 + rows)))
        << cpu_isa_name(isa) << " " << rows << " rows of " << k << " to " << n;
}

// Random words of packed panels, and the codes [k, n] that they hold. A byte is never -128.
struct Codes {
  at::Tensor words;
  at::Tensor b;

  CodedView view() const {
    return {reinterpret_cast<const uint32_t*>(words.const_data_ptr<int32_t>()), words.stride(0)};
  }
};
Codes random_codes(int bits, int64_t k, int64_t n) {
  const int64_t per_word = 32 / bits;
  const int64_t panels = round_up(n, kPanelColumns) / kPanelColumns;
  const auto mask = static_cast<int32_t>(bits == 8 ? 0xff : 0xf);
  const at::Tensor codes = at::randint(bits == 8 ? -127 : -8, bits == 8 ? 128 : 8,
                                       {panels, round_up(k, per_word), kPanelColumns},
                                       at::detail::createCPUGenerator(k), at::kInt);
  const at::Tensor places = codes.view({panels, -1, per_word, kPanelColumns}).bitwise_and(mask);
  at::Tensor words = at::zeros({panels, codes.size(1) / per_word, kPanelColumns}, at::kInt);
  for (int64_t place = 0; place < per_word; ++place) {
    const int64_t shift = bits == 8 ? 8 * place : 4 * (place / 2) + 16 * (place % 2);
    words.bitwise_or_(places.select(2, place).bitwise_left_shift(at::Scalar(shift)));
  }
  return {words, codes.transpose(0, 1).flatten(1).slice(0, 0, k).slice(1, 0, n)};
}

// The product of codes and the product of unpacked codes must have the same bits.
template <class Element>
void check_bytes(CpuIsa isa, int64_t k, int64_t n) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const auto& loops = simd_kernels<Element>(isa);
  const Codes codes = random_codes(8, k, n);
  const CodedView coded = codes.view();
  const int64_t stride = round_up(n, kPanelColumns);
  std::vector<Element> panels(packed_elements<Element>({0, n, k}));
  const PackedView<Element> view{panels.data(), panel_elements<Element>(k)};
  for (int64_t panel = 0; panel * kPanelColumns < n; ++panel)
    loops.unpack_bytes(coded.codes + panel * coded.panel_stride, k,
                       panels.data() + panel * view.panel_stride);
  for (const int64_t rows : {1, 2, 8, 11, 33, 300}) {
    const at::Tensor a = testing::sample({rows, k}, dtype, 1);
    for (const bool accumulate : {true, false}) {
      const at::Tensor decoded = at::ones({rows, stride});
      const at::Tensor unpacked = at::ones({rows, stride});
      loops.multiply_bytes(a.const_data_ptr<Element>(), k, coded, decoded.mutable_data_ptr<float>(),
                           stride, {rows, n, k}, accumulate);
      loops.multiply(a.const_data_ptr<Element>(), k, view, unpacked.mutable_data_ptr<float>(),
                     stride, {rows, n, k}, accumulate);
      const at::Tensor found = decoded.slice(1, 0, n);
      EXPECT_TRUE(at::equal(found, unpacked.slice(1, 0, n))) << cpu_isa_name(isa) << " " << k;
      const at::Tensor wanted =
          at::matmul(a.to(at::kDouble), codes.b.to(at::kDouble)) + (accumulate ? 1 : 0);
      EXPECT_LT(testing::relative_error(found, wanted), testing::tolerance(at::kFloat, k))
          << cpu_isa_name(isa) << " " << k;
    }
  }
}

TEST(SimdKernels, ProductsWithBytesOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const auto& [k, n] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 32}, {7, 32}, {8, 10}, {32, 32}, {77, 32}, {254, 32}, {300, 70}, {4200, 64}}) {
      check_bytes<float>(isa, k, n);
      check_bytes<at::BFloat16>(isa, k, n);
    }
  }
}

// With few rows the kernel decodes codes in registers, with many it unpacks them first; a row has
// the same bits in both cases.
template <class Element>
void check_nibbles(CpuIsa isa, GemmShape shape, int64_t inputs, bool with_offsets) {
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const auto& loops = simd_kernels<Element>(isa);
  const auto [most, n, k] = shape;
  const Codes codes = random_codes(4, k, n);
  const int64_t stride = round_up(n, kPanelColumns);
  const int64_t num_groups = (k + inputs - 1) / inputs;
  const std::vector<int64_t> of_groups{stride / kPanelColumns, num_groups, kPanelColumns};
  const at::Tensor scales = testing::sample(of_groups, at::kBFloat16, 2);
  const at::Tensor offsets = testing::sample(of_groups, at::kBFloat16, 3);
  const at::Tensor a = testing::sample({most, k}, dtype, 1);
  const auto by_k = [&, k = k, n = n](const at::Tensor& of_PGC) {
    return of_PGC.to(at::kDouble)
        .transpose(0, 1)
        .flatten(1)
        .repeat_interleave(inputs, 0)
        .slice(0, 0, k)
        .slice(1, 0, n);
  };
  const at::Tensor sums = at::empty({most, num_groups});
  for (int64_t row = 0; row < most; ++row)
    loops.group_sums(a.const_data_ptr<Element>() + row * k, k, inputs,
                     sums.mutable_data_ptr<float>() + row * num_groups);
  NibbleGroups groups{.scales = scales.const_data_ptr<at::BFloat16>(),
                      .panel_stride = scales.stride(0),
                      .inputs = inputs};
  at::Tensor b = codes.b.to(at::kDouble) * by_k(scales);
  if (with_offsets) {
    groups.offsets = offsets.const_data_ptr<at::BFloat16>();
    groups.row_sums = sums.const_data_ptr<float>();
    groups.row_sums_stride = num_groups;
    b += by_k(offsets);
  }
  const auto product = [&, k = k, n = n](int64_t rows, bool accumulate) {
    at::Tensor c = at::ones({rows, stride});
    loops.multiply_nibbles(a.const_data_ptr<Element>(), k, codes.view(), groups,
                           c.mutable_data_ptr<float>(), stride, {rows, n, k}, accumulate);
    return c.slice(1, 0, n);
  };
  for (const bool accumulate : {true, false}) {
    const at::Tensor all_rows = product(most, accumulate);
    EXPECT_LT(
        testing::relative_error(all_rows, at::matmul(a.to(at::kDouble), b) + (accumulate ? 1 : 0)),
        testing::tolerance(at::kFloat, k))
        << cpu_isa_name(isa) << " " << k << " in groups of " << inputs;
    for (const int64_t rows : {1, 2, 3, 8, 9, 33})
      EXPECT_TRUE(at::equal(product(rows, accumulate), all_rows.slice(0, 0, rows)))
          << cpu_isa_name(isa) << " " << k << " in groups of " << inputs << ": " << rows;
  }
}

TEST(SimdKernels, ProductsWithGroupsOfNibblesOnEveryLevel) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const auto& [shape, inputs] :
         std::vector<std::pair<GemmShape, int64_t>>{{{300, 32, 1}, 32},
                                                    {{300, 32, 7}, 32},
                                                    {{300, 32, 32}, 32},
                                                    {{300, 10, 77}, 32},
                                                    {{300, 70, 320}, 64},
                                                    {{300, 32, 600}, 128},
                                                    {{40, 64, 4200}, 128}}) {
      for (const bool with_offsets : {false, true}) {
        check_nibbles<float>(isa, shape, inputs, with_offsets);
        check_nibbles<at::BFloat16>(isa, shape, inputs, with_offsets);
      }
    }
  }
}

TEST(SimdKernels, RowsOfAProductDoNotDependOnEachOther) {
  for (CpuIsa isa : usable_cpu_isas()) {
    for (const auto& [k, n] :
         std::vector<std::pair<int64_t, int64_t>>{{64, 48}, {33, 70}, {1100, 70}}) {
      check_rows_alone<float>(isa, k, n);
      check_rows_alone<at::BFloat16>(isa, k, n);
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
    // A result below the smallest normal number is 0.
    const at::Tensor error = (y.to(at::kDouble) - wanted).abs() / wanted.clamp_min(2e-38);
    EXPECT_LT(error.masked_select(x.gt(-87.3)).max().item<double>(), 3e-7) << cpu_isa_name(isa);
    EXPECT_EQ(y.masked_select(x.lt(-87.4)).abs().max().item<float>(), 0.0f);
  }
}

at::Tensor soft_cap_of(const at::Tensor& x, SoftCap parameters) {
  const double cap = parameters.cap;
  return (x.to(at::kDouble) * (parameters.scale / cap)).tanh() * cap;
}

// The numbers cover the ranges where tanh is nearly the number itself, where it is nearly 1, and
// all between.
TEST(SimdKernels, SoftCapOnEveryLevel) {
  const at::Tensor x = at::cat({at::linspace(-700, 700, 4001), at::linspace(-30, 30, 2003),
                                at::logspace(-30, 0, 301), at::tensor({0.0f, -0.0f})});
  constexpr SoftCap kParameters{.scale = 0.75f, .cap = 50.0f};
  const at::Tensor wanted = soft_cap_of(x, kParameters);
  for (CpuIsa isa : usable_cpu_isas()) {
    const auto& loops = simd_kernels<float>(isa);
    const at::Tensor y = at::empty_like(x);
    loops.soft_cap(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel(), kParameters);
    const at::Tensor error = (y.to(at::kDouble) - wanted).abs() / wanted.abs().clamp_min(1e-37);
    EXPECT_LT(error.max().item<double>(), 5e-7) << cpu_isa_name(isa);
    EXPECT_LE(y.abs().max().item<float>(), 50.0f);
    at::Tensor in_place = x.clone();
    loops.soft_cap(in_place.const_data_ptr<float>(), in_place.mutable_data_ptr<float>(), x.numel(),
                   kParameters);
    EXPECT_TRUE(at::equal(in_place, y));
    const at::Tensor ends = at::tensor({INFINITY, -INFINITY, NAN});
    loops.soft_cap(ends.const_data_ptr<float>(), ends.mutable_data_ptr<float>(), 3, kParameters);
    EXPECT_EQ(ends[0].item<float>(), 50.0f);
    EXPECT_EQ(ends[1].item<float>(), -50.0f);
    EXPECT_TRUE(ends[2].isnan().item<bool>());
  }
}

template <class Element>
void check_capped_softmax(CpuIsa isa) {
  constexpr float kCap = 3.0f, kLogSumExp = 4.5f;
  const at::Tensor logits = soft_cap_of(testing::sample({101}, at::kFloat, 1) * 4, {.cap = kCap});
  const at::Tensor narrow = logits.to(at::kFloat);
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  const at::Tensor found = at::empty({101}, dtype);
  simd_kernels<Element>(isa).capped_softmax_row(
      narrow.const_data_ptr<float>(), found.mutable_data_ptr<Element>(), 101, kLogSumExp, kCap);
  const at::Tensor wanted = (logits - kLogSumExp).exp() * (1 - (logits / kCap).square());
  EXPECT_LT(testing::relative_error(found, wanted), testing::tolerance(dtype, 1))
      << cpu_isa_name(isa);
}

TEST(SimdKernels, GradientsThroughSoftCapsOnEveryLevel) {
  constexpr int64_t kBegin = 5, kEnd = 71, kWidth = 96;
  constexpr SoftCap kParameters{.scale = 0.5f, .cap = 1.5f};
  constexpr float kDelta = 0.3f;
  const at::Tensor raw = testing::sample({kWidth}, at::kFloat, 1) * 3;
  const at::Tensor incoming = testing::sample({kWidth}, at::kFloat, 2);
  const at::Tensor capped = soft_cap_of(raw, kParameters).slice(0, kBegin, kEnd);
  const double log_sum_exp = capped.logsumexp({0}).item<double>();
  const at::Tensor p = (capped - log_sum_exp).exp();
  const at::Tensor slope = 1 - (capped / double{kParameters.cap}).square();
  const at::Tensor gradient = p * (incoming.to(at::kDouble).slice(0, kBegin, kEnd) - kDelta) *
                              slope * double{kParameters.scale};
  for (CpuIsa isa : usable_cpu_isas()) {
    check_capped_softmax<float>(isa);
    check_capped_softmax<at::BFloat16>(isa);
    const at::Tensor scores = raw.clone(), grad = incoming.clone();
    simd_kernels<float>(isa).capped_weights_backward(
        scores.mutable_data_ptr<float>(), grad.mutable_data_ptr<float>(), kBegin, kEnd, kWidth,
        kParameters, static_cast<float>(log_sum_exp), kDelta);
    EXPECT_LT(testing::relative_error(scores.slice(0, kBegin, kEnd), p), 1e-6) << cpu_isa_name(isa);
    EXPECT_LT(testing::relative_error(grad.slice(0, kBegin, kEnd), gradient), 1e-6)
        << cpu_isa_name(isa);
    for (const at::Tensor& row : {scores, grad}) {
      EXPECT_EQ(row.slice(0, 0, kBegin).abs().max().item<float>(), 0.0f);
      EXPECT_EQ(row.slice(0, kEnd).abs().max().item<float>(), 0.0f);
    }
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
