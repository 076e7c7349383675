// SPDX-License-Identifier: Apache-2.0
//
// Each divergence against its formula, written out in plain arithmetic here, and its gradient
// against differences.
#include "convoy/train/objectives/distill_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace convoy::objectives {
namespace {

using Numbers = std::vector<double>;

const std::vector<Numbers> kModel = {{0.3, -1.2, 2.0, 0.1, -0.4}, {4.0, -3.0, 0.5, 0.0, 1.0}};
const std::vector<Numbers> kTeacher = {{1.0, 0.2, 1.1, -2.0, 0.6}, {-1.0, 2.5, 0.0, 0.3, 3.5}};

at::Tensor fp64_CV(const std::vector<Numbers>& rows) {
  std::vector<at::Tensor> tensors;
  for (const Numbers& row : rows)
    tensors.push_back(at::tensor(row, at::TensorOptions().dtype(at::kDouble)));
  return at::stack(tensors);
}

Numbers softmax(const Numbers& logits, double temperature) {
  Numbers shares;
  for (const double logit : logits) shares.push_back(std::exp(logit / temperature));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

double kl(const Numbers& from, const Numbers& to) {
  double sum = 0;
  for (size_t at = 0; at < from.size(); ++at) sum += from[at] * std::log(from[at] / to[at]);
  return sum;
}

double divergence(const settings::DistillSettings& settings, const Numbers& p, const Numbers& q) {
  if (settings.divergence == settings::kForwardKl) return kl(q, p);
  if (settings.divergence == settings::kReverseKl) return kl(p, q);
  Numbers m;
  for (size_t at = 0; at < p.size(); ++at)
    m.push_back(settings.beta * q[at] + (1 - settings.beta) * p[at]);
  return settings.beta * kl(q, m) + (1 - settings.beta) * kl(p, m);
}

// The teacher's likeliest `count` tokens, and the sum of all others.
Numbers bucketed(const Numbers& shares, const Numbers& by, int64_t count) {
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t left, size_t right) { return by[left] > by[right]; });
  Numbers kept;
  double others = 0;
  for (size_t at = 0; at < order.size(); ++at)
    if (std::ssize(kept) < count)
      kept.push_back(shares[order[at]]);
    else
      others += shares[order[at]];
  kept.push_back(others);
  return kept;
}

settings::DistillSettings distill(const std::string& name, double beta = 0.5,
                                  double temperature = 1, int64_t top_k = 0) {
  settings::DistillSettings settings;
  settings.divergence = name;
  settings.beta = beta;
  settings.temperature = temperature;
  settings.top_k = top_k;
  return settings;
}

std::vector<settings::DistillSettings> all_divergences(double temperature, int64_t top_k) {
  return {distill("forward_kl", 0.5, temperature, top_k),
          distill("reverse_kl", 0.5, temperature, top_k), distill("js", 0.5, temperature, top_k),
          distill("js", 0.15, temperature, top_k)};
}

void expect_gradient(const settings::DistillSettings& settings) {
  const at::Tensor gradient_CV =
      divergences(settings, fp64_CV(kModel), fp64_CV(kTeacher), true).gradient_CV;
  constexpr double kShift = 1e-6;
  for (int64_t row = 0; row < gradient_CV.size(0); ++row)
    for (int64_t token = 0; token < gradient_CV.size(1); ++token) {
      const auto shifted = [&](double shift) {
        const at::Tensor moved_CV = fp64_CV(kModel);
        moved_CV[row][token] += shift;
        return divergences(settings, moved_CV, fp64_CV(kTeacher), false)
            .divergence_C.sum()
            .item<double>();
      };
      EXPECT_NEAR(gradient_CV[row][token].item<double>(),
                  (shifted(kShift) - shifted(-kShift)) / (2 * kShift), 1e-8)
          << settings.divergence << " " << row << " " << token;
    }
}

TEST(DistillLoss, IsTheFormulaOfEveryDivergence) {
  for (const double temperature : {1.0, 2.5})
    for (const settings::DistillSettings& settings : all_divergences(temperature, 0)) {
      const Divergences found = divergences(settings, fp64_CV(kModel), fp64_CV(kTeacher), true);
      for (size_t row = 0; row < kModel.size(); ++row) {
        const Numbers p = softmax(kModel[row], temperature);
        EXPECT_NEAR(found.divergence_C[static_cast<int64_t>(row)].item<double>(),
                    divergence(settings, p, softmax(kTeacher[row], temperature)), 1e-12)
            << settings.divergence;
        double entropy = 0;
        for (const double share : p) entropy -= share * std::log(share);
        EXPECT_NEAR(found.entropy_C[static_cast<int64_t>(row)].item<double>(), entropy, 1e-12);
      }
      expect_gradient(settings);
    }
}

TEST(DistillLoss, CountsTokensBeyondTopKAsOne) {
  for (const double temperature : {1.0, 0.7})
    for (const int64_t top_k : {1, 3, 4})
      for (const settings::DistillSettings& settings : all_divergences(temperature, top_k)) {
        const Divergences found = divergences(settings, fp64_CV(kModel), fp64_CV(kTeacher), true);
        for (size_t row = 0; row < kModel.size(); ++row) {
          const Numbers q = softmax(kTeacher[row], temperature);
          const Numbers p = softmax(kModel[row], temperature);
          const double wanted = divergence(settings, bucketed(p, q, top_k), bucketed(q, q, top_k));
          EXPECT_NEAR(found.divergence_C[static_cast<int64_t>(row)].item<double>(), wanted, 1e-12);
          const double whole = divergence(settings, p, q);
          if (top_k + 1 == std::ssize(p))  // the others are one token
            EXPECT_NEAR(wanted, whole, 1e-12);
          else
            EXPECT_LT(wanted, whole);
        }
        expect_gradient(settings);
      }
}

// A server gives no logits.
TEST(DistillLoss, IsTheSameFromTheTeachersLikeliestTokensAlone) {
  for (const int64_t top_k : {1, 3, 4})
    for (const settings::DistillSettings& settings : all_divergences(1, top_k)) {
      const at::Tensor log_q_CV = fp64_CV(kTeacher).log_softmax(1);
      const auto [top_CK, ids_CK] = log_q_CV.topk(top_k, 1);
      const at::Tensor others_C1 = (1 - top_CK.exp().sum({1}, true)).log();
      const Divergences found = divergences_of_top(
          settings, fp64_CV(kModel),
          {.ids_CK = ids_CK, .logprobs_CB = at::cat({top_CK, others_C1}, 1)}, true);
      const Divergences wanted = divergences(settings, fp64_CV(kModel), fp64_CV(kTeacher), true);
      EXPECT_LE((found.divergence_C - wanted.divergence_C).abs().max().item<double>(), 1e-12);
      EXPECT_LE((found.gradient_CV - wanted.gradient_CV).abs().max().item<double>(), 1e-12);
      EXPECT_LE((found.entropy_C - wanted.entropy_C).abs().max().item<double>(), 1e-15);
    }
}

// At their ends generalized divergences, divided by the small share, are the two others.
TEST(DistillLoss, JensenShannonLiesBetweenTheTwoOthers) {
  const auto sum = [](const settings::DistillSettings& settings) {
    return divergences(settings, fp64_CV(kModel), fp64_CV(kTeacher), false)
        .divergence_C.sum()
        .item<double>();
  };
  constexpr double kSmall = 1e-6;
  EXPECT_NEAR(sum(distill("js", kSmall)) / kSmall, sum(distill("forward_kl")), 1e-3);
  EXPECT_NEAR(sum(distill("js", 1 - kSmall)) / kSmall, sum(distill("reverse_kl")), 1e-3);
}

TEST(DistillLoss, IsNothingForATeacherThatSaysTheSame) {
  for (const int64_t top_k : {0, 2, 5, 9})
    for (const settings::DistillSettings& settings : all_divergences(1, top_k)) {
      const Divergences found = divergences(settings, fp64_CV(kModel), fp64_CV(kModel), true);
      EXPECT_LE(found.divergence_C.abs().max().item<double>(), 1e-15);
      EXPECT_LE(found.gradient_CV.abs().max().item<double>(), 1e-15);
    }
}

// Logits that differ by hundreds: probabilities of 0 in fp32 bring no NaN.
TEST(DistillLoss, IsFiniteForDistributionsWithoutAnOverlap) {
  const at::Tensor model_CV = at::tensor({300.0F, 0.0F, -300.0F, 1.0F}).unsqueeze(0);
  const at::Tensor teacher_CV = at::tensor({-300.0F, 0.0F, 300.0F, -1.0F}).unsqueeze(0);
  for (const int64_t top_k : {0, 1, 2})
    for (const settings::DistillSettings& settings : all_divergences(1, top_k)) {
      const Divergences found = divergences(settings, model_CV, teacher_CV, true);
      EXPECT_TRUE(found.divergence_C.isfinite().all().item<bool>()) << settings.divergence;
      EXPECT_TRUE(found.gradient_CV.isfinite().all().item<bool>()) << settings.divergence;
      EXPECT_GT(found.divergence_C.item<double>(), 0.3);
    }
}

}  // namespace
}  // namespace convoy::objectives
