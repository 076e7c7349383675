// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_guesses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/mf/factor_kernels.h"
#include "convoy/farm/experiments/mf/factor_sizes.h"
#include "convoy/farm/experiments/mf/mf_golden_test.h"
#include "convoy/farm/experiments/mf/mf_theory.h"
#include "convoy/farm/experiments/mf/mf_workload.h"
#include "convoy/farm/experiments/random/numbers.h"

namespace convoy::experiments {
namespace {

using Layers = std::vector<std::vector<double>>;

MfProblem problem_of(const std::string& parameters, int64_t seed = 0) {
  return draw_mf_problem(MfParameters::parse(parameters), seed);
}

double activated(const MfParameters& p, double x) {
  if (p.activation() == MfActivation::Tanh) return std::tanh(x);
  if (p.activation() == MfActivation::LeakyReLU) return x > 0 ? x : p.negative_slope * x;
  return x;
}

// The result of one guess: Y by rows, and whether its training loss is below the limit.
struct MfGuess {
  std::vector<double> y;
  bool passes = false;
};

MfGuess mf_guess(const MfProblem& problem, uint64_t guess, Precision precision, CpuLevel level) {
  const FactorSizes all = factor_sizes(problem, MfCheck::Nothing, precision);
  const FactorSizes checked = factor_sizes(problem, MfCheck::TrainLoss, precision);
  const AddressTables tables(problem.key, Stream::Guess, precision, guess, all.num_blocks);
  const FactorKernel kernel = factor_kernel(level, precision, problem.parameters.gnc_init());
  FactorMemory memory(all);
  std::vector<float> y(size_t{problem.num_entries} * kFactorGuesses + kFactorGuesses);
  float* const aligned = aligned_to_lanes(y.data());
  const auto lower = static_cast<uint32_t>(guess);
  MfGuess made;
  made.passes = (kernel(checked, tables, lower, memory, aligned) & 1u) != 0;
  kernel(all, tables, lower, memory, aligned);
  made.y = rows_of_guess(all, aligned, 0);
  return made;
}

// Returns the weights of a guess without a shortcut, by layer, as [output unit][input].
std::vector<std::vector<float>> mf_guess_weights(const MfProblem& problem, uint64_t guess,
                                                 Precision precision) {
  const FactorSizes sizes = factor_sizes(problem, MfCheck::Nothing, precision);
  std::vector<std::vector<float>> weights;
  for (const FactorLayer& layer : sizes.layers) {
    std::vector<float>& drawn = weights.emplace_back(layer.num_slots);
    const Address address{problem.key, Stream::Guess, precision, guess};
    const uint32_t slot = layer.first_block * sizes.slots_per_block;
    if (problem.parameters.gnc_init() == MfPrior::Uniform)
      fill_uniforms(address, slot, drawn);
    else if (precision == Precision::Fast)
      fill_packed_normals(address, slot, drawn);
    else
      fill_normals(address, slot, drawn);
  }
  return weights;
}

// Computes Y by its definition, in plain double precision. The weights are [output unit][input].
std::vector<double> plain_output(const MfParameters& p, const Layers& weights) {
  const auto rows = static_cast<size_t>(p.n_rows);
  std::vector<double> y(rows * rows, 0.0);
  for (size_t row = 0; row < rows; ++row) y[row * rows + row] = 1;
  size_t inputs = rows;
  for (size_t layer = 0; layer < weights.size(); ++layer) {
    const size_t units = weights[layer].size() / inputs;
    std::vector<double> next(rows * units);
    for (size_t row = 0; row < rows; ++row)
      for (size_t unit = 0; unit < units; ++unit) {
        double sum = 0;
        for (size_t input = 0; input < inputs; ++input)
          sum += y[row * inputs + input] * weights[layer][unit * inputs + input];
        sum /= std::sqrt(static_cast<double>(units));
        next[row * units + unit] = layer + 1 < weights.size() ? activated(p, sum) : sum;
      }
    y = next;
    inputs = units;
  }
  if (!p.gnc_normalize) return y;
  double square = 0;
  for (const double entry : y) square += entry * entry;
  for (double& entry : y) entry /= std::sqrt(square) + p.gnc_softening;
  return y;
}

TEST(MfGuesses, TheirModelIsThatOfAnIndependentProgram) {
  const auto golden = mf_golden();
  for (const auto& wanted : golden["forward"]) {
    const MfProblem problem = problem_of(mf_golden_parameters(golden, wanted));
    const auto drawn = mf_guess_weights(problem, 0, Precision::Exact);
    Layers weights;
    for (size_t layer = 0; layer < drawn.size(); ++layer) {
      weights.emplace_back();
      for (size_t at = 0; at < drawn[layer].size(); ++at)
        weights.back().push_back(
            1.5 * std::sin(1 + 1.7 * static_cast<double>(at) + 0.31 * static_cast<double>(layer)));
    }
    const std::vector<double> y = plain_output(problem.parameters, weights);
    const auto expected = wanted["y"].get<std::vector<double>>();
    ASSERT_EQ(y.size(), expected.size());
    for (size_t at = 0; at < y.size(); ++at) EXPECT_NEAR(y[at], expected[at], 1e-12) << wanted;
  }
}

const char* const kShapes[] = {
    R"({"width": 5})",
    R"({"width": 160})",
    R"({"depth": 1})",
    R"({"width": 1})",
    R"({"width": 7, "depth": 6, "activation": "Tanh"})",
    R"({"width": 23, "depth": 3, "activation": "LeakyReLU", "negative_slope": 0.01})",
    R"({"n_rows": 9, "n_cols": 2, "num_measurements": 4, "width": 12, "activation": "Tanh"})",
    R"({"n_rows": 1, "n_cols": 6, "num_measurements": 2, "depth": 4, "gnc_normalize": true})",
    R"({"n_rows": 17, "n_cols": 3, "num_measurements": 50, "width": 300, "gnc_init": "unif"})",
    R"({"completion": true, "depth": 9, "activation": "LeakyReLU", "gnc_normalize": true})",
    R"({"n_rows": 2, "n_cols": 1, "num_measurements": 1, "gnc_softening": 0.5, "gnc_normalize": true})"};

// The kernels' results equal the definition applied to the guess's weights.
TEST(MfGuesses, KernelsFollowTheDefinition) {
  for (const char* shape : kShapes) {
    const MfProblem problem = problem_of(shape, 2);
    for (uint64_t guess = 0; guess < 80; ++guess) {
      const Precision precision = guess % 2 == 0 ? Precision::Exact : Precision::Fast;
      Layers weights;
      for (const auto& layer : mf_guess_weights(problem, guess, precision))
        weights.emplace_back(layer.begin(), layer.end());
      const std::vector<double> wanted = plain_output(problem.parameters, weights);
      const MfGuess made = mf_guess(problem, guess, precision, best_cpu_level());
      double size = 0;
      for (const double entry : wanted) size = std::max(size, std::abs(entry));
      for (size_t at = 0; at < wanted.size(); ++at)
        ASSERT_NEAR(made.y[at], wanted[at], 2e-6 * size) << shape << " guess " << guess;
      const double loss = problem.test_loss(wanted.data());
      EXPECT_NEAR(problem.test_loss(made.y.data()), loss, 1e-6 * (loss + size)) << shape;
    }
  }
}

TEST(MfGuesses, PassByTheirTrainingLoss) {
  for (const char* shape : kShapes) {
    MfParameters parameters = MfParameters::parse(shape);
    MfProblem problem = draw_mf_problem(parameters, 4);
    std::vector<double> losses;
    for (uint64_t guess = 0; guess < 64; ++guess)
      losses.push_back(problem.train_loss(
          mf_guess(problem, guess, Precision::Exact, best_cpu_level()).y.data()));
    // The limits lie between two losses, so rounding does not decide.
    std::vector<double> sorted = losses;
    std::sort(sorted.begin(), sorted.end());
    for (const size_t place : {size_t{2}, size_t{20}, size_t{60}}) {
      problem.parameters.gnc_eps_train = std::sqrt(sorted[place] * sorted[place + 1]);
      for (uint64_t guess = 0; guess < 64; ++guess)
        EXPECT_EQ(mf_guess(problem, guess, Precision::Exact, best_cpu_level()).passes,
                  losses[guess] < problem.parameters.gnc_eps_train)
            << shape << " guess " << guess << " loss " << losses[guess];
    }
  }
}

TEST(MfGuesses, HaveTheSameBitsAtEveryLevel) {
  const char* const shortcuts[] = {
      R"({"width": 30, "shortcut": "gram", "activation": "Tanh", "depth": 3})",
      R"({"width": 30, "shortcut": "bartlett", "depth": 3})"};
  std::vector<std::string> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.insert(shapes.end(), std::begin(shortcuts), std::end(shortcuts));
  for (const std::string& shape : shapes) {
    const MfProblem problem = problem_of(shape);
    for (const Precision precision : {Precision::Exact, Precision::Fast}) {
      for (const uint64_t guess : {uint64_t{0}, uint64_t{77}, (uint64_t{3} << 32) - 1}) {
        const MfGuess wanted = mf_guess(problem, guess, precision, CpuLevel::Scalar);
        for (const CpuLevel level : usable_cpu_levels())
          EXPECT_EQ(mf_guess(problem, guess, precision, level).y, wanted.y)
              << shape << cpu_level_name(level);
      }
    }
  }
}

TEST(MfGuesses, HaveTheSameBitsForEverySplit) {
  const MfProblem problem = problem_of(R"({"width": 6, "gnc_eps_train": 0.2})");
  for (const CpuLevel level : usable_cpu_levels()) {
    const auto experiment =
        mf_guess_experiment(problem, MfCheck::TrainLoss, Precision::Exact, level);
    const uint64_t first = (uint64_t{1} << 32) - 1000;  // the upper word changes
    const sweep::Tally whole = experiment->run(first, 2000);
    EXPECT_GT(whole.accepted, 50);
    for (const uint64_t part : {1u, 7u, 16u, 333u, 1999u}) {
      sweep::Tally sum;
      for (uint64_t done = 0; done < 2000; done += part)
        sum.merge(experiment->run(first + done, std::min<uint64_t>(part, 2000 - done)));
      EXPECT_EQ(sum, whole) << "parts of " << part;
    }
  }
}

// Expects the means of two samples to agree within their standard errors.
void expect_equal_means(double a, double a_error, double b, double b_error,
                        const std::string& where) {
  EXPECT_NEAR(a, b, 4 * std::hypot(a_error, b_error)) << where;
}

void expect_equal_shares(int64_t a, int64_t a_of, int64_t b, int64_t b_of,
                         const std::string& where) {
  const auto share = [](int64_t part, int64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  const double pooled = share(a + b, a_of + b_of);
  const double error = std::sqrt(pooled * (1 - pooled) *
                                 (1 / static_cast<double>(a_of) + 1 / static_cast<double>(b_of)));
  EXPECT_NEAR(share(a, a_of), share(b, b_of), 4 * error) << where;
}

TEST(MfGuesses, PassAndLoseAsThoseOfAnIndependentProgram) {
  constexpr int64_t kGuesses = 400'000;
  const auto golden = mf_golden();
  for (const auto& wanted : golden["guesses"]) {
    const sweep::Cell cell{"gnc", 5, mf_golden_parameters(golden, wanted)};
    const std::string where = wanted["parameters"].dump();
    for (const Precision precision : {Precision::Exact, Precision::Fast}) {
      const sweep::Tally tally = MfWorkload(precision).guesses(cell)->run(0, kGuesses);
      expect_equal_shares(tally.accepted, kGuesses, wanted["accepted"], wanted["guesses"], where);
      expect_equal_means(tally.mean(), tally.standard_error(), wanted["loss"], wanted["loss_error"],
                         where);
      EXPECT_EQ(tally.non_finite, 0);
    }
    const sweep::Cell of_prior{"prior", 5, cell.parameters};
    const sweep::Tally prior = MfWorkload().guesses(of_prior)->run(0, kGuesses / 4);
    EXPECT_EQ(prior.accepted, prior.guesses);
    expect_equal_means(prior.mean(), prior.standard_error(), wanted["prior_mean"],
                       wanted["prior_error"], where);
    const double exact = MfWorkload().reference(cell).prior_mean;
    if (std::isfinite(exact)) {
      EXPECT_NEAR(exact, wanted["prior_mean"].get<double>(),
                  4 * wanted["prior_error"].get<double>())
          << where;
    }
  }
}

TEST(MfGuesses, GetWorseWithWidthAndBetterWithDepth) {
  const auto tally = [](const std::string& parameters) {
    sweep::Tally sum;
    for (int64_t seed = 0; seed < 4; ++seed)
      sum.merge(MfWorkload().guesses({"gnc", seed, parameters})->run(0, 1'000'000));
    return sum;
  };
  const sweep::Tally narrow = tally(R"({"width": 5, "gnc_eps_train": 0.02})");
  const sweep::Tally wide =
      tally(R"({"width": 40, "gnc_eps_train": 0.02, "shortcut": "bartlett"})");
  EXPECT_GT(narrow.accepted, 2 * wide.accepted);
  EXPECT_LT(narrow.mean() + 2 * narrow.standard_error(), wide.mean());
  const sweep::Tally shallow =
      tally(R"({"depth": 3, "gnc_eps_train": 0.01, "gnc_normalize": true})");
  const sweep::Tally deep = tally(R"({"depth": 9, "gnc_eps_train": 0.01, "gnc_normalize": true})");
  EXPECT_GT(2 * deep.accepted, 3 * shallow.accepted);
  EXPECT_LT(deep.mean() + 2 * deep.standard_error(), shallow.mean());
}

// A shortcut may be offered only if this test passes.
TEST(MfShortcuts, KeepAcceptanceAndLoss) {
  struct Shape {
    const char *parameters, *shortcut;
  };
  for (const Shape& shape :
       {Shape{R"({"width": 9, "gnc_eps_train": 0.05})", "gram"},
        {R"({"width": 6, "depth": 4, "gnc_eps_train": 0.05, "gnc_normalize": true})", "gram"},
        {R"({"width": 9, "activation": "Tanh", "gnc_eps_train": 0.05})", "gram"},
        {R"({"width": 8, "depth": 4, "activation": "Tanh", "gnc_eps_train": 0.03})", "gram"},
        {R"({"width": 12, "activation": "LeakyReLU", "gnc_eps_train": 0.04})", "gram"},
        {R"({"width": 7, "depth": 4, "activation": "LeakyReLU", "gnc_eps_train": 0.02})", "gram"},
        {R"({"n_rows": 2, "n_cols": 7, "num_measurements": 6, "width": 15, "activation": "Tanh",
             "gnc_eps_train": 0.08})",
         "gram"},
        {R"({"n_rows": 7, "n_cols": 2, "num_measurements": 6, "width": 11, "completion": true,
             "activation": "LeakyReLU", "gnc_eps_train": 0.08})",
         "gram"},
        {R"({"width": 5, "gnc_eps_train": 0.05})", "bartlett"},
        {R"({"width": 6, "gnc_eps_train": 0.05})", "bartlett"},
        {R"({"width": 40, "gnc_eps_train": 0.08})", "bartlett"},
        {R"({"width": 5, "depth": 5, "gnc_eps_train": 0.05, "gnc_normalize": true})", "bartlett"},
        {R"({"width": 8, "depth": 3, "gnc_eps_train": 0.05})", "bartlett"},
        {R"({"n_rows": 1, "n_cols": 7, "num_measurements": 3, "width": 1, "gnc_eps_train": 0.03})",
         "bartlett"},
        {R"({"n_rows": 6, "n_cols": 2, "num_measurements": 5, "width": 6, "gnc_eps_train": 0.08})",
         "bartlett"}}) {
    constexpr int64_t kGuesses = 400'000;
    auto parameters = nlohmann::json::parse(shape.parameters);
    const MfWorkload workload;
    const sweep::Tally plain = workload.guesses({"gnc", 1, parameters.dump()})->run(0, kGuesses);
    parameters["shortcut"] = shape.shortcut;
    const sweep::Tally quick = workload.guesses({"gnc", 1, parameters.dump()})->run(0, kGuesses);
    const sweep::Tally prior = workload.guesses({"prior", 1, parameters.dump()})->run(0, 50'000);
    const sweep::Tally plain_prior =
        workload.guesses({"prior", 1, shape.parameters})->run(0, 50'000);
    const std::string where = parameters.dump();
    EXPECT_GT(plain.accepted, 100) << where;
    expect_equal_shares(quick.accepted, kGuesses, plain.accepted, kGuesses, where);
    expect_equal_means(quick.mean(), quick.standard_error(), plain.mean(), plain.standard_error(),
                       where);
    expect_equal_means(prior.mean(), prior.standard_error(), plain_prior.mean(),
                       plain_prior.standard_error(), where);
    EXPECT_EQ(quick.non_finite, 0);
  }
}

// Compares the series of the sum of squares of k normals with quantiles of the chi-square
// distribution from tables.
TEST(MfShortcuts, ChiSeriesFollowTheirQuantiles) {
  const auto value = [](uint32_t degrees, double normal) {
    const ChiSeries series = chi_series(degrees);
    double sum = 0;
    for (size_t order = 0; order < series.coefficients.size(); ++order)
      sum += double{series.coefficients[order]} *
             std::cos(static_cast<double>(order) * std::acos(normal / 6.6));
    return sum * sum;
  };
  EXPECT_NEAR(value(1, 0), 0.454936, 1e-5);
  EXPECT_NEAR(value(2, 1.6448536), 5.991465, 1e-5);
  EXPECT_NEAR(value(5, 2.3263479), 15.086272, 1e-4);
  EXPECT_NEAR(value(10, -2.3263479), 2.558212, 1e-5);
  EXPECT_NEAR(value(100, 1.6448536), 124.342113, 1e-3);
  EXPECT_NEAR(value(4000, 0), 3999.33337, 2e-2);
  for (const double normal : {-6.5, -5.0, -3.0}) EXPECT_NEAR(value(1, normal), 0, 1e-5);
}

}  // namespace
}  // namespace convoy::experiments
