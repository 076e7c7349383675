// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/kernels/simd/cpu_isa.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

testing::OpErrors frozen_errors_of(at::IntArrayRef sizes, int64_t outputs, bool biased,
                                   at::ScalarType dtype, double planted = 0) {
  const at::Tensor weight = testing::sample({outputs, sizes.back()}, dtype, 2);
  const at::Tensor bias = biased ? testing::sample({outputs}, dtype, 3) : at::Tensor();
  const FrozenLinear linear(weight, bias);
  const auto op = [&](const Tensors& in) { return linear.forward(in[0]); };
  const auto reference = [&](const Tensors& in) {
    at::Tensor y = at::matmul(in[0], weight.to(at::kDouble).t() * (1 + planted));
    return biased ? y + bias.to(at::kDouble) : y;
  };
  return testing::compare(op, reference, {testing::sample(sizes, dtype, 1)});
}

TEST(FrozenLinear, EqualsReference) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (bool biased : {false, true}) {
      for (const std::vector<int64_t>& sizes :
           std::vector<std::vector<int64_t>>{{0, 8}, {1, 7}, {33, 64}, {2, 5, 48}}) {
        EXPECT_LT(frozen_errors_of(sizes, 35, biased, dtype).worst(), testing::tolerance(dtype, 64))
            << sizes << dtype;
      }
    }
  }
}

TEST(FrozenLinear, PlantedErrorIsSeen) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_GT(frozen_errors_of({33, 64}, 35, true, dtype, 0.05).worst(),
              testing::tolerance(dtype, 64));
  }
}

TEST(FrozenLinear, InputGradientIsWhatBackwardComputes) {
  const FrozenLinear linear(testing::sample({35, 64}, at::kBFloat16, 2), {});
  const at::Tensor x = testing::sample({9, 64}, at::kBFloat16, 1).requires_grad_(true);
  const at::Tensor y = linear.forward(x);
  const at::Tensor grad = testing::sample({9, 35}, at::kBFloat16, 4);
  EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {x}, {grad})[0], linear.input_gradient(grad)));
}

TEST(FrozenLinear, AddsAProduct) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = testing::sample({35, 64}, dtype, 2);
    const FrozenLinear linear(weight, {});
    const at::Tensor left = testing::sample({9, 5}, dtype, 3);
    const at::Tensor right = testing::sample({35, 5}, dtype, 4);
    const at::Tensor x = testing::sample({9, 64}, dtype, 1);
    const at::Tensor wanted = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t()) +
                              at::matmul(left.to(at::kDouble), right.to(at::kDouble).t());
    EXPECT_LT(testing::relative_error(linear.product(x, {left, right.t()}), wanted),
              testing::tolerance(dtype, 64));
    const at::Tensor back = testing::sample({5, 64}, dtype, 5);
    const at::Tensor grad = testing::sample({9, 35}, dtype, 6);
    const at::Tensor wanted_x = at::matmul(grad.to(at::kDouble), weight.to(at::kDouble)) +
                                at::matmul(left.to(at::kDouble), back.to(at::kDouble));
    EXPECT_LT(testing::relative_error(linear.input_gradient(grad, {left, back}), wanted_x),
              testing::tolerance(dtype, 64));
  }
}

// Greedy generation gives the same tokens in any batch only if this holds.
TEST(FrozenLinear, ARowDoesNotDependOnTheOthers) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised by our own loops";
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = testing::sample({200, 1100}, dtype, 2);
    const at::Tensor x = testing::sample({300, 1100}, dtype, 1);
    const at::Tensor together = FrozenLinear(weight, {}).forward(x);  // packs as it reads
    const FrozenLinear few(weight, {});                               // packs the weight once
    for (const int64_t rows : {1, 2, 8, 9, 33, 130})
      EXPECT_TRUE(at::equal(few.forward(x.slice(0, 7, 7 + rows)), together.slice(0, 7, 7 + rows)))
          << dtype << " " << rows << " rows";
    EXPECT_TRUE(at::equal(few.forward(x), together));
  }
}

TEST(FrozenLinear, ArgmaxIsThatOfTheProduct) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = testing::sample({1000, 64}, dtype, 2);
    const at::Tensor bias = testing::sample({1000}, dtype, 3);
    const FrozenLinear linear(weight, bias);
    const at::Tensor x = testing::sample({70, 64}, dtype, 1);
    for (const int64_t outputs : {1000, 129, 64, 1}) {
      const at::Tensor found = linear.argmax(x, outputs);
      EXPECT_TRUE(at::equal(found, linear.sums(x).narrow(1, 0, outputs).argmax(1)))
          << dtype << " of " << outputs;
    }
  }
}

TEST(FrozenLinear, ArgmaxTakesTheFirstOfEqualOnesAndNoneOfWhatIsNoNumber) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    at::Tensor weight = at::zeros({200, 8}, dtype);
    weight.select(0, 150).fill_(1.0);
    weight.select(0, 33).fill_(1.0);
    const at::Tensor x = at::ones({3, 8}, dtype);
    x.select(0, 1).fill_(NAN);
    x.select(0, 2).fill_(INFINITY);
    weight.select(0, 34).fill_(0.5);
    EXPECT_TRUE(at::equal(FrozenLinear(weight.slice(0, 33, 200).contiguous(), {}).argmax(x, 2),
                          at::tensor({0, -1, -1}, at::kLong)));
    EXPECT_TRUE(
        at::equal(FrozenLinear(weight, {}).argmax(x, 200), at::tensor({33, -1, -1}, at::kLong)));
    EXPECT_EQ(FrozenLinear(weight, {}).argmax(x.slice(0, 0, 0), 200).numel(), 0);
  }
}

struct Quantized {
  IntegerFormat format;
  double largest_step;  // as a share of the group's range
};
const std::vector<Quantized>& frozen_formats() {
  static const std::vector<Quantized> all{{{WeightFormat::Int8}, 1.0 / 254},
                                          {{WeightFormat::Int4, 32}, 1.0 / 8},
                                          {{WeightFormat::Int4, 128}, 1.0 / 8},
                                          {{WeightFormat::Int4Zero, 32}, 1.0 / 15},
                                          {{WeightFormat::Int4Zero, 64}, 1.0 / 15}};
  return all;
}

// Rounded to the dtype of x, the sums equal the product.
TEST(FrozenLinear, SumsAreTheProductBeforeItsLastRounding) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = testing::sample({200, 600}, dtype, 2);
    const at::Tensor bias = testing::sample({200}, dtype, 3);
    const at::Tensor x = testing::sample({70, 600}, dtype, 1);
    std::vector<FrozenLinear> maps;
    maps.emplace_back(weight, bias);
    for (const Quantized& of : frozen_formats())
      maps.emplace_back(quantize_weight(weight, of.format), bias);
    for (const FrozenLinear& map : maps) {
      const at::Tensor sums = map.sums(x);
      EXPECT_TRUE(at::equal(sums.to(dtype), map.forward(x)));
      EXPECT_EQ(sums.scalar_type(), testing::runs_cpu_table() ? at::kFloat : dtype);
    }
  }
}

testing::OpErrors quantized_errors(const IntegerWeight& quantized, int64_t rows, bool biased,
                                   double planted = 0) {
  const int64_t outputs = quantized.codes_OI.size(0);
  const at::Tensor bias = biased ? testing::sample({outputs}, quantized.dtype, 3) : at::Tensor();
  const FrozenLinear linear(quantized, bias);
  const at::Tensor values = quantized.values().to(at::kDouble);
  const auto op = [&](const Tensors& in) { return linear.forward(in[0]); };
  const auto reference = [&](const Tensors& in) {
    const at::Tensor y = at::matmul(in[0], values.t() * (1 + planted));
    return biased ? y + bias.to(at::kDouble) : y;
  };
  return testing::compare(
      op, reference, {testing::sample({rows, quantized.codes_OI.size(1)}, quantized.dtype, 1)});
}

TEST(IntegerLinear, EqualsTheProductWithItsValues) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Quantized& of : frozen_formats()) {
      for (const auto& [outputs, inputs] : std::vector<std::pair<int64_t, int64_t>>{
               {1, 1}, {35, 64}, {64, 33}, {100, 700}, {70, 1184}}) {
        const IntegerWeight weight =
            quantize_weight(testing::sample({outputs, inputs}, dtype, 2), of.format);
        for (const int64_t rows : {1, 5, 14, 29, 50, 70})
          EXPECT_LT(quantized_errors(weight, rows, rows == 5).worst(),
                    testing::tolerance(dtype, inputs))
              << dtype << " format " << static_cast<int>(of.format.weight) << " groups of "
              << of.format.group_inputs << ": " << rows << " x " << inputs << " x " << outputs;
      }
    }
  }
}

TEST(IntegerLinear, PlantedErrorIsSeen) {
  const IntegerWeight weight =
      quantize_weight(testing::sample({35, 64}, at::kBFloat16, 2), {WeightFormat::Int4, 32});
  EXPECT_GT(quantized_errors(weight, 5, false, 0.05).worst(),
            testing::tolerance(at::kBFloat16, 64));
}

TEST(IntegerLinear, AWeightIsKeptWithinHalfAStep) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Quantized& of : frozen_formats()) {
      const at::Tensor weight = testing::sample({40, 256}, dtype, 2);
      const at::Tensor error =
          (quantize_weight(weight, of.format).values() - weight.to(at::kFloat)).abs();
      const int64_t group = of.format.weight == WeightFormat::Int8 ? 256 : of.format.group_inputs;
      const at::Tensor groups = weight.to(at::kFloat).view({40, -1, group});
      const at::Tensor range =
          of.format.weight == WeightFormat::Int4Zero
              ? groups.amax({2}) - groups.amin({2})
              : groups.abs().amax({2}) * (of.format.weight == WeightFormat::Int8 ? 2 : 1);
      // Int4 has no code for the upper end, which costs up to a whole step. Scales in bf16 add a
      // little.
      const at::Tensor bound =
          range * of.largest_step * (of.format.weight == WeightFormat::Int4 ? 1.05 : 0.55);
      EXPECT_TRUE(error.view({40, -1, group}).le(bound.unsqueeze(2)).all().item<bool>())
          << static_cast<int>(of.format.weight);
      EXPECT_GT(error.max().item<float>(), 0.0f);
    }
  }
}

TEST(IntegerLinear, ZerosConstantsAndExtremesArePreserved) {
  for (const Quantized& of : frozen_formats()) {
    at::Tensor weight = at::zeros({3, 64});
    weight.select(0, 1).fill_(0.5);
    weight.select(0, 2).fill_(-2.0);
    EXPECT_TRUE(at::equal(quantize_weight(weight, of.format).values(), weight))
        << static_cast<int>(of.format.weight);
  }
  at::Tensor broken = at::zeros({2, 64});
  broken[1][5] = INFINITY;
  EXPECT_THROW(quantize_weight(broken, {}), DataError);
  EXPECT_THROW(quantize_weight(at::ones({2, 64}), {WeightFormat::Int4, 48}), ConfigError);
}

TEST(IntegerLinear, ARowDoesNotDependOnTheOthers) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Quantized& of : frozen_formats()) {
      const FrozenLinear linear(quantize_weight(testing::sample({150, 600}, dtype, 2), of.format),
                                {});
      const at::Tensor x = testing::sample({300, 600}, dtype, 1);
      const at::Tensor together = linear.forward(x);
      for (const int64_t rows : {1, 2, 9, 33})
        EXPECT_TRUE(
            at::equal(linear.forward(x.slice(0, 7, 7 + rows)), together.slice(0, 7, 7 + rows)));
      EXPECT_TRUE(at::equal(linear.argmax(x, 150), linear.sums(x).argmax(1)));
    }
  }
}

TEST(IntegerLinear, AddsAProduct) {
  const IntegerWeight weight =
      quantize_weight(testing::sample({35, 64}, at::kFloat, 2), {WeightFormat::Int4Zero, 32});
  const FrozenLinear linear(weight, {});
  const at::Tensor left = testing::sample({9, 5}, at::kFloat, 3);
  const at::Tensor right = testing::sample({35, 5}, at::kFloat, 4);
  const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1);
  EXPECT_LT(
      testing::relative_error(linear.product(x, {left, right.t()}),
                              at::matmul(x, weight.values().t()) + at::matmul(left, right.t())),
      testing::tolerance(at::kFloat, 64));
}

IntegerFormat of_rounded_rows(IntegerFormat format) {
  format.activations = ActivationFormat::Int8;
  return format;
}

// The bound is half a step of each block, plus the rounding of the sums.
at::Tensor rounding_bound(const at::Tensor& x, const at::Tensor& values) {
  const int64_t missing = (32 - x.size(1) % 32) % 32;
  const auto blocks = [&](const at::Tensor& of) {
    return at::constant_pad_nd(of.to(at::kDouble).abs(), {0, missing}).view({of.size(0), -1, 32});
  };
  const at::Tensor steps = blocks(x).amax({2}).div(127.0);
  return at::matmul(steps.mul(0.5 + 1e-4), blocks(values).sum({2}).t());
}

TEST(IntegerLinear, RoundedRowsStayWithinHalfAStepOfEachBlock) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Quantized& of : frozen_formats()) {
      for (const auto& [outputs, inputs] :
           std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {35, 64}, {64, 33}, {100, 700}}) {
        const IntegerWeight weight = quantize_weight(testing::sample({outputs, inputs}, dtype, 2),
                                                     of_rounded_rows(of.format));
        const FrozenLinear linear(weight, {});
        const at::Tensor values = weight.values().to(at::kDouble);
        for (const int64_t rows : {1, 5, 70}) {
          const at::Tensor x = testing::sample({rows, inputs}, dtype, 1);
          const at::Tensor y = linear.forward(x).to(at::kDouble);
          const at::Tensor exact = at::matmul(x.to(at::kDouble), values.t());
          at::Tensor bound = rounding_bound(x, values) + 1e-5;
          if (dtype == at::kBFloat16) bound = bound + exact.abs().add(bound).mul(0.0040);
          EXPECT_TRUE((y - exact).abs().le(bound).all().item<bool>())
              << dtype << " format " << static_cast<int>(of.format.weight) << ": " << rows << " x "
              << inputs << " x " << outputs;
          const at::Tensor plain = at::matmul(rounded_activations(x).to(at::kDouble), values.t());
          EXPECT_LT(testing::relative_error(y, plain), testing::tolerance(dtype, inputs));
          EXPECT_TRUE(inputs == 1 || !at::equal(plain, exact));
        }
      }
    }
  }
}

TEST(IntegerLinear, ARoundedRowDoesNotDependOnTheOthers) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Quantized& of : frozen_formats()) {
      const FrozenLinear linear(
          quantize_weight(testing::sample({150, 600}, dtype, 2), of_rounded_rows(of.format)), {});
      const at::Tensor x = testing::sample({300, 600}, dtype, 1);
      const at::Tensor together = linear.forward(x);
      for (const int64_t rows : {1, 2, 3, 9, 33})
        EXPECT_TRUE(
            at::equal(linear.forward(x.slice(0, 7, 7 + rows)), together.slice(0, 7, 7 + rows)));
      EXPECT_TRUE(at::equal(linear.argmax(x, 150), linear.sums(x).argmax(1)));
    }
  }
}

TEST(IntegerLinear, RoundedRowsTakeABiasAndAProductAsTheyAre) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  const IntegerWeight weight = quantize_weight(testing::sample({35, 64}, at::kFloat, 2),
                                               of_rounded_rows({WeightFormat::Int4Zero, 32}));
  const at::Tensor bias = testing::sample({35}, at::kFloat, 6);
  const FrozenLinear linear(weight, bias);
  const at::Tensor left = testing::sample({9, 5}, at::kFloat, 3);
  const at::Tensor right = testing::sample({35, 5}, at::kFloat, 4);
  const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1);
  EXPECT_LT(testing::relative_error(linear.product(x, {left, right.t()}),
                                    at::matmul(rounded_activations(x), weight.values().t()) + bias +
                                        at::matmul(left, right.t())),
            testing::tolerance(at::kFloat, 64));
}

TEST(FrozenLinear, BackwardOutlivesTheMap) {
  const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1).requires_grad_(true);
  at::Tensor y;
  {
    const FrozenLinear linear(testing::sample({35, 64}, at::kFloat, 2), {});
    y = linear.forward(x);
  }
  y.sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace convoy::kernels
