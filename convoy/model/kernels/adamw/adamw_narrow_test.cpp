// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "convoy/core/base/hash.h"
#include "convoy/model/kernels/adamw/adamw_update.h"
#include "convoy/model/kernels/adamw/rounding_draws.h"
#include "convoy/model/kernels/registry/op_table.h"

namespace convoy::kernels {
namespace {

constexpr AdamWStep kStep{.learning_rate = 1e-2, .weight_decay = 0.1, .gradient_scale = 0.5};

struct Form {
  at::ScalarType value;
  at::ScalarType moments;
  bool has_master;
};

const Form kForms[] = {{at::kFloat, at::kByte, false},    {at::kFloat, at::kByte, true},
                       {at::kBFloat16, at::kByte, false}, {at::kFloat, at::kBFloat16, false},
                       {at::kFloat, at::kBFloat16, true}, {at::kBFloat16, at::kBFloat16, false},
                       {at::kBFloat16, at::kFloat, false}};

uint64_t key_of_step(int step) {
  const std::array<uint64_t, 2> words = {77, static_cast<uint64_t>(step)};
  return mix_seed(words);
}

AdamWTensors sample(const Form& form, int64_t numel) {
  const at::Generator generator = at::detail::createCPUGenerator(17);
  const auto fresh = [&] { return at::randn({numel}, generator, at::kFloat); };
  AdamWTensors of{.value = fresh().to(form.value),
                  .gradient = fresh(),
                  .exp_avg = at::zeros({numel}, form.moments),
                  .exp_avg_sq = at::zeros({numel}, form.moments)};
  if (form.has_master) of.rounded = at::zeros({numel}, at::kBFloat16);
  if (form.moments != at::kByte) return of;
  of.exp_avg_scale = at::zeros({(numel + kMomentBlock - 1) / kMomentBlock});
  of.exp_avg_sq_scale = at::zeros_like(of.exp_avg_scale);
  return of;
}

std::vector<at::Tensor> written(const AdamWTensors& of) {
  std::vector<at::Tensor> all = {of.value, of.exp_avg, of.exp_avg_sq};
  if (of.exp_avg_scale.defined()) all.insert(all.end(), {of.exp_avg_scale, of.exp_avg_sq_scale});
  if (of.rounded.defined()) all.push_back(of.rounded);
  return all;
}

void take_steps(const AdamWTensors& of, int steps) {
  for (int number = 1; number <= steps; ++number) {
    AdamWStep step = kStep;
    step.step = number;
    AdamWTensors now = of;
    now.draw_key = key_of_step(number);
    adamw_update({now}, step);
  }
}

AdamWTensors part(const AdamWTensors& of, int64_t begin, int64_t count) {
  const auto cut = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  const auto cut_blocks = [&](const at::Tensor& tensor) {
    return tensor.defined()
               ? tensor.narrow(0, begin / kMomentBlock, (count + kMomentBlock - 1) / kMomentBlock)
               : tensor;
  };
  return {.value = cut(of.value),
          .gradient = cut(of.gradient),
          .exp_avg = cut(of.exp_avg),
          .exp_avg_sq = cut(of.exp_avg_sq),
          .exp_avg_scale = cut_blocks(of.exp_avg_scale),
          .exp_avg_sq_scale = cut_blocks(of.exp_avg_sq_scale),
          .rounded = cut(of.rounded),
          .draw_key = of.draw_key,
          .first_element = begin};
}

TEST(NarrowAdamW, PiecesGiveTheBitsOfTheWhole) {
  for (const Form& form : kForms) {
    constexpr int64_t kNumel = 5000;
    const AdamWTensors whole = sample(form, kNumel), pieces = sample(form, kNumel);
    take_steps(whole, 5);
    for (const auto& [begin, end] : {std::pair{0, 512}, {512, 3584}, {3584, 5000}})
      take_steps(part(pieces, begin, end - begin), 5);
    const auto wanted = written(whole), found = written(pieces);
    for (size_t at = 0; at < wanted.size(); ++at)
      EXPECT_TRUE(at::equal(found[at], wanted[at])) << form.value << form.moments << at;
  }
}

// LibTorch's ops update the parameters on all devices except CPUs.
TEST(NarrowAdamW, LibTorchsOpsAgreeWithOurLoops) {
  for (const Form& form : kForms) {
    constexpr int64_t kNumel = 4100;
    const AdamWTensors own = sample(form, kNumel), aten = sample(form, kNumel);
    take_steps(own, 5);
    {
      const CpuTableOverride as_other_devices(aten_op_table());
      take_steps(aten, 5);
    }
    const auto wanted = written(own), found = written(aten);
    for (size_t at = 0; at < wanted.size(); ++at) {
      const at::Tensor apart = (wanted[at].to(at::kDouble) - found[at].to(at::kDouble)).abs();
      // A difference in the last bit of fp32 sometimes changes a code or a random rounding; there
      // are no other differences.
      const bool is_float = wanted[at].scalar_type() == at::kFloat;
      const double allowed = is_float ? 1e-5 : 0.0;
      EXPECT_LE(apart.gt(allowed).sum().item<int64_t>(), kNumel / 200) << form.moments << at;
    }
  }
}

TEST(NarrowAdamW, RoundingByChanceHasTheMeanOfTheValue) {
  // Values that lie halfway, a tenth and almost nothing above a bf16 number, also below zero.
  for (const float value : {1.00390625f, 1.00078125f, 1.00000024f, -3.0031f, 1e-20f}) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    double sum = 0;
    constexpr int kDraws = 1 << 16;
    for (uint32_t draw = 0; draw < kDraws; ++draw)
      sum += __builtin_bit_cast(float, drawn_bf16(bits, draw) << 16);
    EXPECT_NEAR(sum / kDraws, value, std::fabs(value) * 1e-7) << value;
  }
  EXPECT_EQ(drawn_bf16(__builtin_bit_cast(uint32_t, INFINITY), 0xffff), 0x7f80u);
}

// Updates much smaller than half a bf16 step are lost by rounding to nearest. Random rounding keeps
// them in the mean.
TEST(NarrowAdamW, SmallUpdatesOfABf16ValueAreNotLost) {
  constexpr int64_t kNumel = 40'000;
  constexpr int kSteps = 60;
  constexpr double kRate = 1e-5;  // a bf16 step at 1 is 2^-7 = 7.8e-3
  AdamWTensors of = sample({at::kBFloat16, at::kBFloat16, false}, kNumel);
  of.value.fill_(1.0);
  of.gradient.fill_(0.25);
  for (int number = 1; number <= kSteps; ++number) {
    of.draw_key = key_of_step(number);
    adamw_update({of}, {.learning_rate = kRate, .step = number});
  }
  const double moved = 1.0 - of.value.to(at::kDouble).mean().item<double>();
  // Each step moves the value by the learning rate. The mean of 40,000 random roundings with
  // probability p = moved / 2^-8 has the standard deviation 2^-8 sqrt(p (1 - p) / 40000) = 7e-6.
  EXPECT_NEAR(moved, kSteps * kRate, 4e-5);
  EXPECT_GT(of.value.ne(1.0).sum().item<int64_t>(), 0);
}

TEST(NarrowAdamW, Bf16MomentsFollowTheirMeansInTheMean) {
  constexpr int64_t kNumel = 40'000;
  AdamWTensors of = sample({at::kFloat, at::kBFloat16, false}, kNumel);
  of.gradient.fill_(0.3);
  double mean = 0, square = 0;
  for (int number = 1; number <= 50; ++number) {
    of.draw_key = key_of_step(number);
    adamw_update({of}, {.learning_rate = 1e-3, .step = number});
    mean += (0.3 - mean) * 0.1;
    square = square * 0.999 + 0.09 * 0.001;
  }
  EXPECT_NEAR(of.exp_avg.to(at::kDouble).mean().item<double>() / mean, 1.0, 1e-4);
  // With rounding to nearest, the second moment would have stopped long before: 0.001 of it is less
  // than half a bf16 step.
  EXPECT_NEAR(of.exp_avg_sq.to(at::kDouble).mean().item<double>() / square, 1.0, 5e-4);
}

// The random words of an element's two moments, of its value and of the next step are independent.
TEST(NarrowAdamW, DrawsOfMomentsValuesAndStepsDiffer) {
  const CounterKey key = counter_key(0xfeedface12345678), next = counter_key(0xfeedface12345679);
  int64_t with_value = 0, with_step = 0, halves = 0;
  constexpr uint32_t kCount = 1 << 16;
  for (uint32_t at = 0; at < kCount; ++at) {
    const uint32_t word = counter_hash(key, at, 0);
    with_value += __builtin_popcount(word ^ counter_hash(value_key(key), at, 0));
    with_step += __builtin_popcount(word ^ counter_hash(next, at, 0));
    halves += __builtin_popcount((word ^ (word >> 16)) & 0xffffu);
  }
  EXPECT_NEAR(static_cast<double>(with_value) / (32.0 * kCount), 0.5, 0.005);
  EXPECT_NEAR(static_cast<double>(with_step) / (32.0 * kCount), 0.5, 0.005);
  EXPECT_NEAR(static_cast<double>(halves) / (16.0 * kCount), 0.5, 0.005);
}

}  // namespace
}  // namespace convoy::kernels
