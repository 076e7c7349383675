// SPDX-License-Identifier: Apache-2.0
//
// Checks the rules of the formats. The comparison with bitsandbytes is in
// model/models/stored_codes_test.cpp.
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/kernels/simd/cpu_isa.h"
#include "convoy/model/kernels/simd/simd_kernels.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

const std::vector<BitsandbytesFormat>& formats() {
  static const std::vector<BitsandbytesFormat> all{
      {CodeType::Nf4, 64, false}, {CodeType::Nf4, 64, true},  {CodeType::Fp4, 64, false},
      {CodeType::Nf4, 32, true},  {CodeType::Fp4, 256, true}, {CodeType::Int8, 64, false}};
  return all;
}

std::string text_of(const BitsandbytesFormat& format) {
  return fmt::format("{} of {}{}", code_type_name(format.type), format.block,
                     format.nested ? " nested" : "");
}

// Decodes one element after another, as the format defines it.
at::Tensor plain_values(const BitsandbytesWeight& weight) {
  const at::Tensor values = at::empty(weight.shape, at::kFloat);
  float* to = values.mutable_data_ptr<float>();
  const int64_t width = weight.shape.back();
  for (int64_t at = 0; at < weight.numel(); ++at) {
    if (weight.format.type == CodeType::Int8) {
      to[at] = static_cast<float>(weight.codes.const_data_ptr<int8_t>()[at]) *
               weight.absmax.const_data_ptr<float>()[at / width] * 7.874015718698502e-3f;
      continue;
    }
    const uint8_t byte = weight.codes.const_data_ptr<uint8_t>()[at / 2];
    const int64_t block = at / weight.format.block;
    const NibbleTable& table = weight.format.type == CodeType::Nf4 ? nf4_table() : fp4_table();
    float absmax;
    if (weight.format.nested)
      absmax = weight.nested_table[weight.absmax[block].item<int64_t>()].item<float>() *
                   weight.nested_absmax[block / 256].item<float>() +
               weight.nested_offset.item<float>();
    else
      absmax = weight.absmax.const_data_ptr<float>()[block];
    to[at] = table[at % 2 == 0 ? byte >> 4 : byte & 15] * absmax;
  }
  return values;
}

const std::vector<std::vector<int64_t>>& shapes() {
  static const std::vector<std::vector<int64_t>> all{
      {1, 1}, {35, 64}, {64, 33}, {10, 7}, {50, 300}};
  return all;
}

TEST(BitsandbytesWeight, DecodesAsTheFormatSays) {
  for (const BitsandbytesFormat& format : formats())
    for (const std::vector<int64_t>& shape : shapes()) {
      const BitsandbytesWeight weight =
          encode_weight(testing::sample(shape, at::kFloat, 2), format);
      const at::Tensor wanted = plain_values(weight);
      for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
        const at::Tensor found = decode_weight(weight, dtype);
        EXPECT_EQ(found.scalar_type(), dtype);
        EXPECT_TRUE(at::equal(found, wanted.to(dtype)))
            << text_of(format) << " " << dtype << " " << at::IntArrayRef(shape);
      }
    }
}

TEST(BitsandbytesWeight, CodesAreTheNearest) {
  const at::Tensor weight = testing::sample({40, 96}, at::kFloat, 2);
  for (const CodeType type : {CodeType::Nf4, CodeType::Fp4}) {
    const BitsandbytesWeight coded = encode_weight(weight, {type, 64, false});
    const at::Tensor blocks = weight.view({-1, 64});
    const at::Tensor largest = blocks.abs().amax({1}, true);
    EXPECT_TRUE(at::equal(coded.absmax, largest.view({-1})));
    const at::Tensor table =
        at::tensor(at::ArrayRef<float>(type == CodeType::Nf4 ? nf4_table() : fp4_table()));
    const at::Tensor error = (decode_weight(coded, at::kFloat) - weight).abs().view({-1, 64});
    const at::Tensor best =
        (table.view({1, 1, 16}) * largest.unsqueeze(2) - blocks.unsqueeze(2)).abs().amin({2});
    EXPECT_TRUE(at::allclose(error, best, 1e-5, 1e-7));
  }
}

// Returns the code of `value` in a block whose largest element is 1.
uint8_t code_of(CodeType type, float value) {
  const at::Tensor block = at::zeros({64});
  block[0] = 1.0f;
  block[2] = value;
  return encode_weight(block.view({1, 64}), {type, 64, false}).codes.const_data_ptr<uint8_t>()[1] >>
         4;
}

TEST(BitsandbytesWeight, ATieTakesTheLowerNumber) {
  for (const CodeType type : {CodeType::Nf4, CodeType::Fp4}) {
    const NibbleTable& table = type == CodeType::Nf4 ? nf4_table() : fp4_table();
    NibbleTable sorted = table;
    std::sort(sorted.begin(), sorted.end());
    for (size_t rank = 0; rank + 1 < sorted.size(); ++rank) {
      if (sorted[rank] == sorted[rank + 1]) continue;  // FP4 has two codes for zero
      const float middle = (sorted[rank] + sorted[rank + 1]) / 2;
      EXPECT_EQ(table[code_of(type, middle)], sorted[rank]) << middle;
      EXPECT_EQ(table[code_of(type, std::nextafter(middle, -2.0f))], sorted[rank]) << middle;
      EXPECT_EQ(table[code_of(type, std::nextafter(middle, 2.0f))], sorted[rank + 1]) << middle;
    }
  }
}

TEST(BitsandbytesWeight, ZerosStayZerosAndAnOddEndIsFilledUp) {
  for (const BitsandbytesFormat& format : formats()) {
    if (format.nested) continue;  // the nested form adds the mean of other blocks
    at::Tensor weight = testing::sample({3, 64}, at::kFloat, 5);
    weight.select(0, 1).zero_();
    EXPECT_TRUE(decode_weight(encode_weight(weight, format), at::kFloat)
                    .select(0, 1)
                    .eq(0)
                    .all()
                    .item<bool>())
        << text_of(format);
  }
  const BitsandbytesWeight odd = encode_weight(testing::sample({3, 23}, at::kFloat, 1), {});
  EXPECT_EQ(odd.codes.sizes(), (std::vector<int64_t>{35, 1}));
  EXPECT_EQ(odd.absmax.numel(), 2);
  EXPECT_EQ(odd.codes.const_data_ptr<uint8_t>()[34] & 15, 7);  // 7 is the code of 0
}

TEST(BitsandbytesWeight, RefusesWhatIsNotFiniteAndOtherBlocks) {
  for (const BitsandbytesFormat& format : formats())
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      at::Tensor weight = at::ones({2, 64});
      weight[1][5] = bad;
      EXPECT_THROW(encode_weight(weight, format), DataError) << text_of(format);
    }
  EXPECT_THROW(encode_weight(at::ones({2, 64}), {CodeType::Nf4, 48, false}), ConfigError);
  EXPECT_THROW(encode_weight(at::ones({2, 64}), {CodeType::Nf4, 16, false}), ConfigError);
  EXPECT_THROW(encode_weight(at::full({2, 64}, 1e5), {CodeType::Int8, 64, false}), DataError);
}

// Computes the map by its rule: for i from 0 to 6, the middles of 2^i even steps from 0.1 to 1,
// times 10^(i - 6). The signed map has both signs, the unsigned map twice the steps; both have 0
// and 1.
TEST(DynamicMap, HasTheNumbersOfItsRule) {
  for (const DynamicMap kind : {DynamicMap::Signed, DynamicMap::Unsigned}) {
    std::vector<double> wanted{0.0, 1.0};
    for (int decade = 0; decade < 7; ++decade) {
      const int steps = 1 << (kind == DynamicMap::Signed ? decade : decade + 1);
      for (int step = 0; step < steps; ++step) {
        const double middle = (0.1 + 0.9 * (step + 0.5) / steps) * std::pow(10.0, decade - 6);
        wanted.push_back(middle);
        if (kind == DynamicMap::Signed) wanted.push_back(-middle);
      }
    }
    std::sort(wanted.begin(), wanted.end());
    const at::Tensor found = dynamic_map(kind);
    ASSERT_EQ(found.numel(), 256);
    ASSERT_EQ(wanted.size(), 256U);
    for (size_t at = 0; at < wanted.size(); ++at)
      EXPECT_NEAR(found[static_cast<int64_t>(at)].item<float>(), wanted[at],
                  1e-6 * std::abs(wanted[at]));
  }
}

TEST(BitsandbytesWeight, NestingKeepsAbsmaxNearly) {
  const at::Tensor weight =
      testing::sample({300, 128}, at::kFloat, 4) * testing::sample({300, 1}, at::kFloat, 5).abs();
  const BitsandbytesWeight plain = encode_weight(weight, {CodeType::Nf4, 64, false});
  const BitsandbytesWeight nested = encode_weight(weight, {CodeType::Nf4, 64, true});
  EXPECT_TRUE(at::equal(plain.codes, nested.codes));
  EXPECT_NEAR(nested.nested_offset.item<float>(), plain.absmax.mean().item<float>(), 1e-6);
  const at::Tensor beside = (plain.absmax - nested.nested_offset).abs();
  EXPECT_TRUE(at::equal(nested.nested_absmax[0], beside.slice(0, 0, 256).amax()));
  EXPECT_LT(nested.num_bytes(), plain.num_bytes());
  const double change =
      testing::relative_error(decode_weight(nested, at::kFloat), decode_weight(plain, at::kFloat));
  EXPECT_GT(change, 0);
  EXPECT_LT(change, 0.01);
}

template <class Element>
void check_decode(CpuIsa isa) {
  const auto& loops = simd_kernels<Element>(isa);
  const at::Tensor bytes = at::arange(256).to(at::kByte).repeat({2});
  const auto* codes = bytes.const_data_ptr<uint8_t>();
  const auto dtype = c10::CppTypeToScalarType<Element>::value;
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 64}, {1, 63}, {7, 1}, {3, 0}, {12, 131}, {5, 40}}) {
    std::vector<Element> found(count + 1, Element(7.0f));
    loops.decode_nibbles(codes, first, {nf4_table().data(), 0.37f}, found.data(), count);
    for (int64_t at = 0; at < count; ++at) {
      const uint8_t byte = codes[(first + at) / 2];
      const float wanted = nf4_table()[(first + at) % 2 == 0 ? byte >> 4 : byte & 15] * 0.37f;
      EXPECT_EQ(found[at], Element(wanted)) << cpu_isa_name(isa) << dtype << " " << first + at;
    }
    EXPECT_EQ(found[count], Element(7.0f));
    std::vector<Element> rows(count + 1, Element(7.0f));
    const auto* numbers = reinterpret_cast<const int8_t*>(codes) + first;
    loops.decode_bytes(numbers, 0.61f, rows.data(), count);
    for (int64_t at = 0; at < count; ++at)
      EXPECT_EQ(rows[at], Element(static_cast<float>(numbers[at]) * 0.61f * 7.874015718698502e-3f))
          << cpu_isa_name(isa) << dtype;
    EXPECT_EQ(rows[count], Element(7.0f));
  }
}

TEST(BitsandbytesWeight, DecodesOnEveryLevel) {
  for (const CpuIsa isa : usable_cpu_isas()) {
    check_decode<float>(isa);
    check_decode<at::BFloat16>(isa);
  }
}

testing::OpErrors linear_errors(const BitsandbytesWeight& weight, at::ScalarType dtype,
                                int64_t rows, bool biased, double planted = 0) {
  const at::Tensor bias = biased ? testing::sample({weight.shape[0]}, dtype, 3) : at::Tensor();
  const FrozenLinear linear(weight, bias);
  const at::Tensor values = decode_weight(weight, dtype).to(at::kDouble);
  const auto op = [&](const testing::Tensors& in) { return linear.forward(in[0]); };
  const auto reference = [&](const testing::Tensors& in) {
    const at::Tensor y = at::matmul(in[0], values.t() * (1 + planted));
    return biased ? y + bias.to(at::kDouble) : y;
  };
  return testing::compare(op, reference, {testing::sample({rows, weight.shape[1]}, dtype, 1)});
}

TEST(BitsandbytesLinear, EqualsTheProductWithItsValues) {
  for (const BitsandbytesFormat& format : formats())
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{1, 1}, {64, 33}, {100, 700}, {70, 1184}}) {
      const BitsandbytesWeight weight =
          encode_weight(testing::sample(shape, at::kFloat, 2), format);
      for (const auto dtype : {at::kFloat, at::kBFloat16})
        for (const int64_t rows : {0, 5, 14, 29, 50, 70})
          EXPECT_LT(linear_errors(weight, dtype, rows, rows == 5).worst(),
                    testing::tolerance(dtype, std::max(shape[0], shape[1])))
              << text_of(format) << " " << dtype << " " << at::IntArrayRef(shape) << " " << rows;
    }
}

TEST(BitsandbytesLinear, PlantedErrorIsSeen) {
  const BitsandbytesWeight weight = encode_weight(testing::sample({35, 64}, at::kBFloat16, 2), {});
  EXPECT_GT(linear_errors(weight, at::kBFloat16, 5, false, 0.05).worst(),
            testing::tolerance(at::kBFloat16, 64));
}

TEST(BitsandbytesLinear, AddsAProductForwardAndBack) {
  for (const BitsandbytesFormat& format : formats()) {
    const BitsandbytesWeight weight =
        encode_weight(testing::sample({35, 64}, at::kFloat, 2), format);
    const at::Tensor values = decode_weight(weight, at::kFloat);
    const FrozenLinear linear(weight, {});
    const at::Tensor left = testing::sample({9, 5}, at::kFloat, 3);
    const at::Tensor right = testing::sample({35, 5}, at::kFloat, 4);
    const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1);
    EXPECT_LT(testing::relative_error(linear.product(x, {left, right.t()}),
                                      at::matmul(x, values.t()) + at::matmul(left, right.t())),
              testing::tolerance(at::kFloat, 64));
    const at::Tensor back = testing::sample({5, 64}, at::kFloat, 5);
    const at::Tensor grad = testing::sample({9, 35}, at::kFloat, 6);
    EXPECT_LT(testing::relative_error(linear.input_gradient(grad, {left, back}),
                                      at::matmul(grad, values) + at::matmul(left, back)),
              testing::tolerance(at::kFloat, 64));
  }
}

TEST(BitsandbytesLinear, ARowDoesNotDependOnTheOthers) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const BitsandbytesFormat& format : formats()) {
      const FrozenLinear linear(encode_weight(testing::sample({150, 600}, dtype, 2), format), {});
      const at::Tensor x = testing::sample({300, 600}, dtype, 1);
      const at::Tensor together = linear.forward(x);
      for (const int64_t rows : {1, 2, 9, 33})
        EXPECT_TRUE(
            at::equal(linear.forward(x.slice(0, 7, 7 + rows)), together.slice(0, 7, 7 + rows)));
      EXPECT_TRUE(at::equal(linear.argmax(x, 150), linear.sums(x).argmax(1)));
    }
}

// A sharded model writes its weights into the same tensors before every use.
TEST(BitsandbytesLinear, ReadsItsTensorsAsTheyAre) {
  if (!testing::runs_cpu_table())
    GTEST_SKIP() << "tests move weights to devices as they are packed";
  BitsandbytesWeight weight = encode_weight(testing::sample({35, 64}, at::kFloat, 2), {});
  const FrozenLinear linear(weight, {});
  const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1);
  const at::Tensor before = linear.forward(x);
  weight.absmax.mul_(2);
  EXPECT_TRUE(at::allclose(linear.forward(x), before * 2));
}

}  // namespace
}  // namespace convoy::kernels
