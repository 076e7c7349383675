// SPDX-License-Identifier: Apache-2.0
//
// Compares Convoy's CUDA kernels for quantised weights with LibTorch: decoding, and products of few
// rows.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/integer_weight/grouped_codes.h"
#include "kernels_cuda/own_kernels_test.h"

namespace convoy::kernels {
namespace {

TEST(OwnDecoding, HasTheBitsOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const BitsandbytesFormat& format :
         std::vector<BitsandbytesFormat>{{CodeType::Nf4, 64, false},
                                         {CodeType::Nf4, 32, true},
                                         {CodeType::Fp4, 128, false},
                                         {CodeType::Fp4, 64, true},
                                         {CodeType::Int8, 64, false}})
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{1, 1}, {7, 9}, {33, 64}, {300, 72}, {5, 1000}}) {
        const BitsandbytesWeight weight = encode_weight(sample(shape, at::kFloat, 2), format);
        EXPECT_TRUE(at::equal(own().bitsandbytes_weight.decode(weight, type),
                              aten().bitsandbytes_weight.decode(weight, type)))
            << code_type_name(format.type) << " " << format.block << " " << at::IntArrayRef(shape);
      }
}

TEST(OwnDecoding, HasTheBitsOfGroupsOfWholeNumbers) {
  for (const at::ScalarType type : kTypes)
    for (const IntegerFormat& format : std::vector<IntegerFormat>{
             {WeightFormat::Int4, 32}, {WeightFormat::Int4Zero, 64}, {WeightFormat::Int4Zero, 128}})
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{1, 1}, {7, 9}, {33, 64}, {300, 72}, {5, 1000}}) {
        const IntegerWeight weight = quantize_weight(sample(shape, at::kFloat, 2), format);
        EXPECT_TRUE(at::equal(GroupedCodes(weight).decode(type), weight.values().to(type)))
            << format.group_inputs << " " << at::IntArrayRef(shape);
      }
}

// A quantised weight and its decoded values.
struct CodedSample {
  std::string what;
  std::function<std::shared_ptr<PackedLinear>(const FrozenLinearOps&, const at::Tensor&)> pack;
  at::Tensor values_OI;
};

std::vector<CodedSample> coded_samples(at::IntArrayRef shape) {
  std::vector<CodedSample> all;
  const at::Tensor weight = sample(shape, at::kBFloat16, 2);
  for (const IntegerFormat& format : std::vector<IntegerFormat>{{WeightFormat::Int8},
                                                                {WeightFormat::Int4, 64},
                                                                {WeightFormat::Int4Zero, 32},
                                                                {WeightFormat::Int4Zero, 128}}) {
    const IntegerWeight coded = quantize_weight(weight, format);
    all.push_back(
        {fmt::format("format {} of {}", static_cast<int>(format.weight), format.group_inputs),
         [coded](const FrozenLinearOps& ops, const at::Tensor& bias) {
           return ops.pack_integer(coded, bias);
         },
         coded.values()});
  }
  for (const BitsandbytesFormat& format :
       std::vector<BitsandbytesFormat>{{CodeType::Nf4, 64, false},
                                       {CodeType::Nf4, 32, true},
                                       {CodeType::Fp4, 128, false},
                                       {CodeType::Fp4, 64, true},
                                       {CodeType::Int8, 64, false}}) {
    const BitsandbytesWeight coded = encode_weight(weight, format);
    all.push_back({fmt::format("{} of {}", code_type_name(format.type), format.block),
                   [coded](const FrozenLinearOps& ops, const at::Tensor& bias) {
                     return ops.pack_bitsandbytes(coded, bias);
                   },
                   aten().bitsandbytes_weight.decode(coded, at::kFloat)});
  }
  return all;
}

// The shapes: vectors of codes can be read, with a short last chunk or outputs that end within a
// tile; or no vector can be read. The rows need every number of tiles, several passes, or are too
// many for the kernel.
TEST(OwnCodedLinear, IsThatOfLibTorch) {
  for (const auto& [outputs, inputs, row_counts] :
       std::vector<std::tuple<int64_t, int64_t, std::vector<int64_t>>>{{1, 32, {1, 3}},
                                                                       {35, 96, {1, 8, 9, 33}},
                                                                       {100, 160, {16, 128, 129}},
                                                                       {40, 2080, {1, 12, 31}},
                                                                       {70, 48, {2, 20}},
                                                                       {9, 50, {0, 2}},
                                                                       {3, 1, {1}}})
    for (const CodedSample& of : coded_samples({outputs, inputs}))
      for (const int64_t rows : row_counts) {
        const std::string what = fmt::format("{}: {} x {} x {}", of.what, rows, inputs, outputs);
        const at::Tensor x = sample({rows, inputs}, at::kBFloat16, 1);
        const at::Tensor bias = rows % 2 == 0 ? sample({outputs}, at::kBFloat16, 3) : at::Tensor();
        ProductTerm added;
        if (rows % 3 == 0)
          added = {sample({rows, 4}, at::kBFloat16, 4), sample({4, outputs}, at::kBFloat16, 5)};
        const auto found = of.pack(own().frozen_linear, bias);
        const auto wanted = of.pack(aten().frozen_linear, bias);
        expect_close(found->forward(x, added), wanted->forward(x, added), inputs, what);
        const at::Tensor grad = sample({rows, outputs}, at::kBFloat16, 6);
        for (const bool sums : {false, true}) {
          const auto gradient = [&](PackedLinear& linear) {
            return linear.input_gradient(grad, {}, sums ? x.clone() : at::Tensor());
          };
          expect_close(gradient(*found), gradient(*wanted), outputs, what);
        }
      }
}

// Rows that are 1 at a single input give the weights, each rounded at most twice.
TEST(OwnCodedLinear, EveryWeightIsInItsPlace) {
  for (const CodedSample& of : coded_samples({67, 192}))
    for (const int64_t together : {8, 16, 96}) {
      const at::Tensor unit = at::eye(192, at::kBFloat16);
      const auto linear = of.pack(own().frozen_linear, {});
      for (int64_t first = 0; first < 192; first += together) {
        const at::Tensor found =
            linear->forward(unit.narrow(0, first, together), {}).t().to(at::kFloat);
        const at::Tensor wanted = of.values_OI.narrow(1, first, together);
        EXPECT_TRUE(
            ((found - wanted).abs() <= wanted.abs() * std::ldexp(1.0, -8)).all().item<bool>())
            << of.what << " from " << first;
      }
    }
}

TEST(OwnCodedLinear, KeepsNaNInItsRow) {
  for (const CodedSample& of : coded_samples({40, 96})) {
    at::Tensor x = sample({11, 96}, at::kBFloat16, 1);
    x[4][70] = NAN;
    const at::Tensor broken = of.pack(own().frozen_linear, {})->forward(x, {}).isnan();
    EXPECT_TRUE(broken[4].all().item<bool>()) << of.what;
    EXPECT_EQ(broken.sum().item<int64_t>(), 40) << of.what;
  }
}

}  // namespace
}  // namespace convoy::kernels
