// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/mf/mf_golden_test.h"

namespace convoy::experiments {
namespace {

MfProblem mf_problem_of(const std::string& parameters, int64_t seed = 0) {
  return draw_mf_problem(MfParameters::parse(parameters), seed);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t at = 0; at < a.size(); ++at) sum += a[at] * b[at];
  return sum;
}

TEST(MfProblem, HasLossesOfAnIndependentComputation) {
  const auto golden = mf_golden();
  for (const auto& wanted : golden["forward"]) {
    const MfProblem problem = mf_problem_of(mf_golden_parameters(golden, wanted));
    const auto y = wanted["y"].get<std::vector<double>>();
    EXPECT_NEAR(problem.train_loss(y.data()), wanted["train_loss"].get<double>(), 1e-12);
    EXPECT_NEAR(problem.test_loss(y.data()), wanted["loss"].get<double>(), 1e-12);
  }
}

TEST(MfProblem, DrawsAMatrixOfItsRankAndNorm) {
  const MfProblem problem = mf_problem_of(R"({"n_rows": 4, "n_cols": 7, "gt_norm": 2.5})", 3);
  EXPECT_NEAR(dot(problem.truth, problem.truth), 2.5 * 2.5, 1e-12);
  for (size_t row = 1; row < 4; ++row)
    for (size_t col = 1; col < 7; ++col)
      EXPECT_NEAR(problem.truth[0] * problem.truth[row * 7 + col],
                  problem.truth[col] * problem.truth[row * 7], 1e-12);
  const MfProblem second = mf_problem_of(R"({"gt_rank": 2})");
  EXPECT_GT(std::abs(second.truth[0] * second.truth[6] - second.truth[1] * second.truth[5]), 1e-6);
}

TEST(MfProblem, MeasuresByGaussianMatricesOfNormOne) {
  const MfProblem problem = mf_problem_of("{}");
  ASSERT_EQ(problem.measurements.size(), 15u);
  EXPECT_EQ(problem.num_tested, 10u);
  for (const auto& one : problem.measurements) EXPECT_NEAR(dot(one, one), 1, 1e-12);
  for (const auto& one : problem.span)
    for (const auto& other : problem.span)
      EXPECT_NEAR(dot(one, other), &one == &other ? 1 : 0, 1e-12);
}

TEST(MfProblem, CompletionMeasuresDistinctEntries) {
  std::set<std::vector<std::vector<double>>> choices;
  for (int64_t seed = 0; seed < 20; ++seed) {
    const MfProblem problem = mf_problem_of(R"({"completion": true})", seed);
    std::set<std::vector<double>> entries(problem.measurements.begin(), problem.measurements.end());
    EXPECT_EQ(entries.size(), 15u);
    for (const auto& one : entries) EXPECT_EQ(dot(one, one), 1);
    choices.insert(problem.measurements);
    std::vector<double> y = problem.truth;
    for (double& entry : y) entry += 1;
    EXPECT_NEAR(problem.train_loss(y.data()), 1, 1e-12);
    EXPECT_NEAR(problem.test_loss(y.data()), 1, 1e-12);
  }
  EXPECT_EQ(choices.size(), 20u);
}

TEST(MfProblem, DependsOnTheSeedAndNotOnTheModel) {
  const MfProblem one = mf_problem_of(R"({"width": 5, "depth": 2})");
  const MfProblem other =
      mf_problem_of(R"({"width": 80, "depth": 7, "activation": "Tanh", "gnc_init": "unif"})");
  EXPECT_EQ(one.truth, other.truth);
  EXPECT_EQ(one.measurements, other.measurements);
  EXPECT_NE(one.truth, mf_problem_of("{}", 1).truth);
  EXPECT_NE(one.truth, mf_problem_of(R"({"sweep_seed": 1})").truth);
  EXPECT_NE(one.measurements[0], one.measurements[1]);
}

TEST(MfProblem, RepeatedMeasurementsLeaveMoreToTest) {
  const MfProblem problem = mf_problem_of(
      R"({"n_rows": 1, "n_cols": 3, "num_measurements": 2, "truth": [1, 2, 2],
          "measurements": [[1, 0, 0], [2, 0, 0]]})");
  EXPECT_EQ(problem.num_tested, 2u);
  const std::vector<double> zero(3, 0.0);
  EXPECT_NEAR(problem.test_loss(zero.data()), 4, 1e-12);
  EXPECT_NEAR(problem.train_loss(zero.data()), 2.5, 1e-12);
}

TEST(MfParameters, RefuseWhatCanNotBe) {
  for (const char* wrong : {R"({"n_rows": 1, "n_cols": 1, "num_measurements": 1})",
                            R"({"num_measurements": 25})",
                            R"({"completion": true, "num_measurements": 25})",
                            R"({"num_measurements": 0})",
                            R"({"width": 0})",
                            R"({"depth": 0})",
                            R"({"gt_rank": 0})",
                            R"({"activation": "ReLU"})",
                            R"({"gnc_eps_train": 0})",
                            R"({"gd_lr": "fast"})",
                            R"({"n_rows": 5.5})",
                            R"({"wdth": 5})",
                            R"([])",
                            R"({"truth": [1, 2]})",
                            R"({"n_rows": 4096, "n_cols": 4096})",
                            R"({"width": 4000, "depth": 9})",
                            R"({"shortcut": "gram", "gnc_init": "unif", "width": 40})",
                            R"({"shortcut": "gram", "width": 5})",
                            R"({"shortcut": "bartlett", "width": 4})",
                            R"({"shortcut": "bartlett", "activation": "Tanh"})",
                            R"({"shortcut": "gram", "depth": 1})"})
    EXPECT_THROW(MfParameters::parse(wrong), ConfigError) << wrong;
}

TEST(MfParameters, ComeBackFromTheirText) {
  const std::string text =
      R"({"activation":"LeakyReLU","completion":true,"depth":3,"gd_lr":0.5,"gnc_init":"unif","width":7})";
  EXPECT_EQ(MfParameters::parse(text).json(), text);
  EXPECT_EQ(MfParameters::parse(R"({"activation": "Leaky ReLU"})").activation(),
            MfActivation::LeakyReLU);
}

}  // namespace
}  // namespace convoy::experiments
