// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_shortcuts.h"

#include <algorithm>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/chi_series.h"
#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/ssm/guess_kernels.h"
#include "convoy/farm/experiments/ssm/ssm_guesses.h"

namespace convoy::experiments {
namespace {

class TwoRandomGuesses : public sweep::GuessExperiment {
 public:
  TwoRandomGuesses(const SsmProblem& problem, Precision precision, CpuLevel level)
      : problem_(problem), precision_(precision), level_(level) {
    if (problem.student_dim > 1) left_ = chi_series(problem.student_dim - 1);
  }

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    sweep::Tally tally;
    tally.guesses = static_cast<int64_t>(count);
    alignas(64) float normals[2 * kTileGuesses];
    const uint64_t end = first + count;
    for (uint64_t guess = first; guess < end; guess += kTileGuesses) {
      fill_normal_tile({problem_.key, Stream::GuessSum, precision_, guess}, 2, normals, level_);
      const auto lanes = std::min<uint64_t>(kTileGuesses, end - guess);
      for (uint64_t lane = 0; lane < lanes; ++lane)
        check(double{normals[lane]}, double{normals[kTileGuesses + lane]}, tally);
    }
    return tally;
  }

  double expected_rate() const override { return 1e7; }

 private:
  void check(double of_sum, double of_rest, sweep::Tally& tally) const {
    const double d = problem_.student_dim, sd = problem_.prior_sd;
    const double root = left_.coefficients.empty() ? 0 : left_.at(of_rest);
    double s[kMaxSsmPower] = {sd * std::sqrt(d) * of_sum,
                              sd * sd * (of_sum * of_sum + root * root)};
    for (uint32_t at = 0; at < problem_.num_powers; ++at) s[at] -= problem_.target[at];
    if (problem_.train_loss(s) < problem_.parameters.eps_train)
      tally.accept(problem_.generalisation_loss(s));
  }

  SsmProblem problem_;
  Precision precision_;
  CpuLevel level_;
  ChiSeries left_;  // root of the sum of squares about the mean; empty: the sum is 0
};

class ProjectedGuesses : public sweep::GuessExperiment {
 public:
  ProjectedGuesses(const SsmProblem& problem, Precision precision, CpuLevel level)
      : problem_(problem),
        precision_(precision),
        sum_kernel_(power_sums(level, precision, 1)),
        all_kernel_(power_sums(level, precision, (1u << problem.num_powers) - 1)) {
    for (const auto& row : problem.rows) weight_ += row[0] * row[0] / problem.divisor;
  }

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    sweep::Tally tally;
    tally.guesses = static_cast<int64_t>(count);
    for_each_table(first, count,
                   [&](uint64_t from, uint64_t part) { run_within(from, part, tally); });
    return tally;
  }

  double expected_rate() const override { return 5e7; }

 private:
  struct Passed {
    std::vector<uint32_t> guesses;
    std::vector<double> sums;  // sums of the weights, by guess
  };

  // Runs guesses whose indices all have the same upper 32 bits as `first`.
  void run_within(uint64_t first, uint64_t count, sweep::Tally& tally) const {
    const AddressTables of_sums(problem_.key, Stream::GuessSum, precision_, first,
                                num_guess_blocks(1, precision_));
    const AddressTables of_weights(problem_.key, Stream::Guess, precision_, first,
                                   num_guess_blocks(problem_.student_dim, precision_));
    const double spread = problem_.prior_sd * std::sqrt(static_cast<double>(problem_.student_dim));
    Passed passed;
    for (uint64_t done = 0; done < count; done += kGroupGuesses) {
      uint32_t guesses[kGroupGuesses];
      float normals[kGroupGuesses];
      for (uint32_t g = 0; g < kGroupGuesses; ++g)
        guesses[g] = static_cast<uint32_t>(first + done) + g;
      sum_kernel_(of_sums, 1, guesses, normals);
      const auto lanes = std::min<uint64_t>(kGroupGuesses, count - done);
      for (uint32_t g = 0; g < lanes; ++g) {
        const double sum = spread * double{normals[g]};
        const double s = sum - problem_.target[0];
        if (!(weight_ * s * s < problem_.parameters.eps_train)) continue;
        passed.guesses.push_back(guesses[g]);
        passed.sums.push_back(sum);
        if (passed.guesses.size() == kGroupGuesses) add_losses(of_weights, passed, tally);
      }
    }
    add_losses(of_weights, passed, tally);
  }

  // Adds the losses of the guesses in `passed`, then empties `passed`.
  void add_losses(const AddressTables& tables, Passed& passed, sweep::Tally& tally) const {
    const size_t lanes = passed.guesses.size();
    if (lanes == 0) return;
    passed.guesses.resize(kGroupGuesses);
    float sums[kMaxGuessPower * kGroupGuesses];
    all_kernel_(tables, problem_.student_dim, passed.guesses.data(), sums);
    for (size_t g = 0; g < lanes; ++g) tally.accept(moved_loss(sums + g, passed.sums[g]));
    passed = {};
  }

  // The loss of guesses moved to the sum `wanted`. Turns the power sums p of normals z into power
  // sums of z + shift: sum over i of (m over i) shift^(m - i) p_i.
  double moved_loss(const float* sums, double wanted) const {
    const double d = problem_.student_dim, sd = problem_.prior_sd;
    const double shift = (wanted / sd - double{sums[0]}) / d;
    double s[kMaxSsmPower];
    double row[kMaxSsmPower + 1] = {1};  // a row of Pascal's triangle
    double scale = 1;
    for (uint32_t m = 1; m <= problem_.num_powers; ++m) {
      scale *= sd;
      for (uint32_t i = m; i > 0; --i) row[i] += row[i - 1];
      double sum = d;
      for (uint32_t i = 1; i <= m; ++i)
        sum = sum * shift + row[i] * double{sums[(i - 1) * kGroupGuesses]};
      s[m - 1] = scale * sum - problem_.target[m - 1];
    }
    return problem_.generalisation_loss(s);
  }

  SsmProblem problem_;
  Precision precision_;
  PowerSums sum_kernel_;
  PowerSums all_kernel_;
  double weight_ = 0;  // training loss = weight_ * s_1^2
};

}  // namespace

std::string shortcut_refusal(const SsmProblem& problem, SsmShortcut shortcut) {
  if (shortcut == SsmShortcut::TwoRandoms && problem.num_powers > 2)
    return fmt::format("two_randoms needs sequence_length 2 or 3, found {}",
                       problem.num_powers + 1);
  if (shortcut == SsmShortcut::Projection && problem.tested_powers() != 1)
    return "projection needs a training loss of the first entries of w alone";
  return "";
}

SsmShortcut best_shortcut(const SsmProblem& problem) {
  for (const auto shortcut : {SsmShortcut::TwoRandoms, SsmShortcut::Projection})
    if (shortcut_refusal(problem, shortcut).empty()) return shortcut;
  return SsmShortcut::None;
}

std::unique_ptr<sweep::GuessExperiment> shortcut_experiment(const SsmProblem& problem,
                                                            Precision precision, CpuLevel level) {
  const SsmShortcut shortcut = problem.parameters.shortcut();
  const std::string refusal = shortcut_refusal(problem, shortcut);
  if (!refusal.empty())
    throw ConfigError(fmt::format("shortcut: {}", refusal),
                      {.hint = "--shortcut auto takes it where it can"});
  if (shortcut == SsmShortcut::TwoRandoms)
    return std::make_unique<TwoRandomGuesses>(problem, precision, level);
  return std::make_unique<ProjectedGuesses>(problem, precision, level);
}

}  // namespace convoy::experiments
