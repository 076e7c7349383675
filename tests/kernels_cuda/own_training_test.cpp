// SPDX-License-Identifier: Apache-2.0
//
// Compares Convoy's CUDA kernels of a training step with LibTorch: the loss of the head, AdamW, and
// norms of gradients.
#include <gtest/gtest.h>

#include "kernels_cuda/own_kernels_test.h"

namespace convoy::kernels {
namespace {

struct HeadSample {
  at::Tensor hidden_ND, weight_VD, labels_N;
};

HeadSample head_sample(int64_t rows, int64_t vocab, at::ScalarType type) {
  return {sample({rows, 24}, type, 1), sample({vocab, 24}, type, 2),
          (at::arange(rows, at::kLong) * 37 + 3).remainder(vocab)};
}

TEST(OwnCrossEntropy, IsThatOfLibTorch) {
  for (const at::ScalarType type : kTypes)
    for (const auto& [rows, vocab] : std::vector<std::array<int64_t, 2>>{
             {0, 8}, {2, 2}, {3, 7}, {20, 64}, {5, 2048}, {3, 2056}, {3, 4104}, {4, 2051}}) {
      const std::string what = fmt::format("{} x {}", rows, vocab);
      const auto [hidden, weight, labels] = head_sample(rows, vocab, type);
      const WantedGradients both{.hidden = true, .weight = true};
      const at::Tensor none;
      const at::Tensor of_tokens = at::linspace(0.25, 1.5, rows, at::kFloat);
      const HeadTargets weighted{labels, of_tokens};
      const HeadLoss own_weighted = own().cross_entropy.loss(hidden, {weight}, weighted, both);
      const HeadLoss wanted_weighted = aten().cross_entropy.loss(hidden, {weight}, weighted, both);
      // A weight may make a loss near 0 the largest one. Such a loss is only as exact as the
      // exponential.
      constexpr int64_t kOfExponentials = 1024;
      expect_close(own_weighted.loss, wanted_weighted.loss, vocab + kOfExponentials, what);
      expect_close(own_weighted.hidden_ND, wanted_weighted.hidden_ND, vocab + kOfExponentials,
                   what);
      const HeadTargets targets{labels, none};
      const HeadLoss found = own().cross_entropy.loss(hidden, {weight}, targets, both);
      const HeadLoss wanted = aten().cross_entropy.loss(hidden, {weight}, targets, both);
      expect_close(found.loss, wanted.loss, vocab, what);
      expect_close(found.hidden_ND, wanted.hidden_ND, vocab, what);
      // The weight's gradient comes from products of p, which is rounded to `type`.
      EXPECT_LT(relative_error(found.weight_VD, wanted.weight_VD), tolerance(type, rows)) << what;
      const HeadLoss alone = own().cross_entropy.loss(hidden, {weight}, targets, {});
      EXPECT_TRUE(at::equal(alone.loss, found.loss)) << what;
      const LabelLosses judged = own().cross_entropy.label_losses(hidden, {weight}, labels);
      const LabelLosses wanted_judged = aten().cross_entropy.label_losses(hidden, {weight}, labels);
      expect_close(judged.nll_N, wanted_judged.nll_N, vocab, what);
      EXPECT_TRUE(at::equal(judged.correct_N, wanted_judged.correct_N)) << what;
    }
}

// The weight has one column, and the hidden values are 1, so the logits equal the weights.
TEST(OwnCrossEntropy, TakesTheFirstOfEqualLogitsAndHugeOnes) {
  for (const int64_t vocab : {2304, 2305}) {
    at::Tensor weight = at::zeros({vocab, 1});
    for (const int64_t place : {2303, 300, 1200}) weight[place] = 5;
    const at::Tensor labels = at::tensor({300, 1200, 2303}, at::kLong);
    const LabelLosses judged = own().cross_entropy.label_losses(at::ones({3, 1}), {weight}, labels);
    EXPECT_TRUE(at::equal(judged.correct_N, labels.eq(300)));
    weight[7] = 3e38f;
    weight[8] = -3e38f;
    weight[9] = -INFINITY;
    const at::Tensor huge =
        own()
            .cross_entropy.label_losses(at::ones({2, 1}), {weight}, at::tensor({7, 8}, at::kLong))
            .nll_N;
    EXPECT_NEAR(huge[0].item<float>(), 0.0, 1e-6);
    EXPECT_GT(huge[1].item<float>(), 3e38f);
    weight[7] = NAN;
    const at::Tensor judged_nan =
        own()
            .cross_entropy.label_losses(at::ones({1, 1}), {weight}, at::tensor({8}, at::kLong))
            .nll_N;
    EXPECT_TRUE(std::isnan(judged_nan.item<float>()));
  }
}

// In every second group of tensors, the gradients are in bf16.
std::vector<AdamWTensors> adamw_sample(int64_t count, bool rounds) {
  std::vector<AdamWTensors> all;
  for (int64_t number = 0; number < count; ++number) {
    const int64_t size = number % 7 == 3 ? 0 : number == 1 ? 17'000 : 1 + number * 5;
    const auto seed = static_cast<uint64_t>(number);
    const auto fresh = [&](uint64_t of) {
      return moved(sample({size}, at::kFloat, 4 * seed + of), number % 3 == 2 ? 1 : 0);
    };
    all.push_back(
        {.value = fresh(0),
         .gradient = number / 2 % 2 == 0 ? fresh(1) : fresh(1).to(at::kBFloat16),
         .exp_avg = fresh(2),
         .exp_avg_sq = fresh(3).square_(),
         .rounded = rounds && number % 2 == 0 ? at::zeros({size}, at::kBFloat16) : at::Tensor()});
  }
  return all;
}

TEST(OwnAdamW, UpdatesAllParametersAsLibTorchDoes) {
  const AdamWStep step{
      .learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 0.37, .step = 3};
  for (const int64_t count : {1, 64, 65, 150})
    for (const bool rounds : {false, true}) {
      const auto found = adamw_sample(count, rounds), wanted = adamw_sample(count, rounds);
      own().adamw.update(found, step);
      aten().adamw.update(wanted, step);
      for (int64_t number = 0; number < count; ++number) {
        const std::string what = fmt::format("{} of {}", number, count);
        expect_close(found[number].value, wanted[number].value, 1, what);
        expect_close(found[number].exp_avg, wanted[number].exp_avg, 1, what);
        expect_close(found[number].exp_avg_sq, wanted[number].exp_avg_sq, 1, what);
        EXPECT_TRUE(at::equal(found[number].gradient, wanted[number].gradient)) << what;
        if (!found[number].rounded.defined()) continue;
        EXPECT_TRUE(at::equal(found[number].rounded, found[number].value.to(at::kBFloat16)));
      }
    }
}

// The forms alternate: moments as codes, in bf16 or in fp32; the value in fp32, in fp32 with a
// copy, or in bf16.
std::vector<AdamWTensors> narrow_sample(int64_t count) {
  std::vector<AdamWTensors> all = adamw_sample(count, false);
  for (int64_t number = 0; number < count; ++number) {
    AdamWTensors& of = all[number];
    const int64_t numel = of.value.numel(), form = number % 5;
    const at::ScalarType moments = form < 2 ? at::kByte : form < 4 ? at::kBFloat16 : at::kFloat;
    of.exp_avg = at::zeros({numel}, moments);
    of.exp_avg_sq = at::zeros({numel}, moments);
    if (moments == at::kByte) {
      of.exp_avg_scale = at::zeros({(numel + kMomentBlock - 1) / kMomentBlock});
      of.exp_avg_sq_scale = at::zeros_like(of.exp_avg_scale);
    }
    if (form == 1 || form == 3 || form == 4) of.value = of.value.to(at::kBFloat16);
    if (form == 0) of.rounded = at::zeros({numel}, at::kBFloat16);
    of.draw_key = 99 + static_cast<uint64_t>(number);
    of.first_element = form == 2 ? (int64_t{1} << 32) - kMomentBlock : 0;
  }
  return all;
}

TEST(OwnAdamW, NarrowFormsFollowLibTorchs) {
  for (const int64_t count : {1, 5, 33, 70}) {
    const auto found = narrow_sample(count), wanted = narrow_sample(count);
    for (int64_t number = 1; number <= 3; ++number) {
      const AdamWStep step{
          .learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 0.37, .step = number};
      own().adamw.update_narrow(found, step);
      aten().adamw.update_narrow(wanted, step);
    }
    for (int64_t number = 0; number < count; ++number) {
      const auto few = [&](const at::Tensor& left, const at::Tensor& right, double apart) {
        if (!left.defined()) return;
        const at::Tensor far = (left.to(at::kDouble) - right.to(at::kDouble)).abs().gt(apart);
        // A difference in the last bit of fp32 may change a code or a random rounding.
        EXPECT_LE(far.sum().item<int64_t>(), left.numel() / 200) << number << " of " << count;
      };
      few(found[number].value, wanted[number].value, 1e-5);
      few(found[number].exp_avg, wanted[number].exp_avg, 1e-6);
      few(found[number].exp_avg_sq, wanted[number].exp_avg_sq, 1e-6);
      few(found[number].exp_avg_scale, wanted[number].exp_avg_scale, 1e-5);
      few(found[number].exp_avg_sq_scale, wanted[number].exp_avg_sq_scale, 1e-5);
      if (!found[number].rounded.defined()) continue;
      EXPECT_TRUE(at::equal(found[number].rounded, found[number].value.to(at::kBFloat16)));
    }
  }
}

TEST(OwnSumOfSquares, AddsAllTensorsAsTheCpuDoes) {
  for (const int64_t count : {1, 2, 161, 330}) {
    std::vector<at::Tensor> tensors;
    for (int64_t number = 0; number < count; ++number) {
      const int64_t size = number % 7 == 3 ? 0 : number == 1 ? 70'001 : 1 + number * 5;
      tensors.push_back(moved(sample({size}, kTypes[static_cast<size_t>(number / 3 % 2)], number),
                              number % 3 == 2 ? 1 : 0));
    }
    const auto found = own().sum_of_squares.sum(tensors);
    EXPECT_EQ(found.scalar_type(), at::kDouble);
    const double wanted = kSumOfSquaresCpu.sum(tensors).item<double>();
    EXPECT_NEAR(found.item<double>() / wanted, 1, 1e-12) << count;
    EXPECT_NEAR(aten().sum_of_squares.sum(tensors).item<double>() / wanted, 1, 1e-5) << count;
    tensors.back() = sample({9}, at::kFloat, 1).mul_(1e25f);
    EXPECT_TRUE(std::isfinite(own().sum_of_squares.sum(tensors).item<double>()));
    tensors.back().view({-1})[8] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isinf(own().sum_of_squares.sum(tensors).item<double>()));
  }
  EXPECT_EQ(own().sum_of_squares.sum({at::zeros({0})}).item<double>(), 0);
}

}  // namespace
}  // namespace convoy::kernels
