// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_descent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/farm/experiments/mf/mf_golden_test.h"
#include "convoy/farm/experiments/mf/mf_workload.h"

namespace convoy::experiments {
namespace {

// The weights that the golden runs start from.
MfWeights golden_weights(const MfProblem& problem) {
  MfWeights weights = mf_initial_weights(problem);
  const MfParameters& p = problem.parameters;
  for (size_t layer = 0; layer < weights.size(); ++layer) {
    const auto inputs = static_cast<double>(layer == 0 ? p.n_rows : p.width);
    for (size_t at = 0; at < weights[layer].size(); ++at)
      weights[layer][at] =
          p.descent.init_scale / std::sqrt(inputs) *
          std::sin(2 + 1.3 * static_cast<double>(at) + 0.7 * static_cast<double>(layer));
  }
  return weights;
}

TEST(MfDescent, EndsWhereAnIndependentOneEnds) {
  const auto golden = mf_golden();
  for (const auto& wanted : golden["descent"]) {
    const MfProblem problem =
        draw_mf_problem(MfParameters::parse(mf_golden_parameters(golden, wanted)), 0);
    const sweep::CellOutcome outcome = descend_mf({problem}, {golden_weights(problem)}).at(0);
    EXPECT_EQ(outcome.steps, wanted["steps"].get<int64_t>());
    const double loss = wanted["loss"], train_loss = wanted["train_loss"];
    EXPECT_NEAR(outcome.value, loss, 1e-7 * loss) << wanted;
    EXPECT_NEAR(outcome.train_loss, train_loss, 1e-7 * train_loss + 1e-13) << wanted;
  }
}

TEST(MfDescent, GivesEachCellTheSameBitsInAnyCompany) {
  std::vector<sweep::Cell> cells;
  for (const char* parameters :
       {R"({"width": 6, "gd_epochs": 301})", R"({"width": 6, "gd_epochs": 301, "gd_lr": 1e-3})",
        R"({"width": 9, "gd_epochs": 301, "activation": "Tanh"})",
        R"({"depth": 3, "gd_epochs": 301, "activation": "LeakyReLU", "gd_momentum": 0.9})"})
    for (int64_t seed = 0; seed < 5; ++seed) cells.push_back({"gd", seed, parameters});
  const MfWorkload workload;
  const std::vector<sweep::CellOutcome> together = workload.compute(cells);
  for (size_t at = 0; at < cells.size(); ++at) {
    const sweep::CellOutcome alone = workload.compute({cells[at]}).at(0);
    EXPECT_EQ(alone.value, together[at].value) << cells[at].parameters.str() << cells[at].seed;
    EXPECT_EQ(alone.train_loss, together[at].train_loss);
  }
}

TEST(MfDescent, LearnsWhatItsMeasurementsDetermine) {
  std::vector<sweep::Cell> cells;
  for (int64_t seed = 0; seed < 8; ++seed)
    cells.push_back({"gd", seed, R"({"gd_lr": 1e-3, "gd_init_scale": 1e-3, "gd_epochs": 20001})"});
  int64_t close = 0;
  for (const sweep::CellOutcome& outcome : MfWorkload().compute(cells)) {
    EXPECT_LT(outcome.train_loss, 1e-6);
    close += outcome.value < 1e-2;
  }
  // A matrix of rank 1 has 9 unknowns, and there are 15 measurements. The mean loss of the prior is
  // 0.24.
  EXPECT_GE(close, 6);
}

TEST(MfDescent, DivergenceIsNoNumber) {
  const sweep::Cell cell{
      "gd", 0, R"({"gd_lr": 1e300, "gd_init_scale": 1e10, "gd_epochs": 50, "gd_log_period": 1})"};
  EXPECT_FALSE(std::isfinite(MfWorkload().compute({cell}).at(0).value));
}

TEST(MfDescent, StartsFromItsOwnStream) {
  const MfProblem problem =
      draw_mf_problem(MfParameters::parse(R"({"width": 40, "depth": 3, "gd_init_scale": 0.5})"), 3);
  const MfWeights weights = mf_initial_weights(problem);
  ASSERT_EQ(weights.size(), 3u);
  const size_t counts[] = {200, 1600, 200};
  const double bounds[] = {0.5 / std::sqrt(5), 0.5 / std::sqrt(40), 0.5 / std::sqrt(40)};
  for (size_t layer = 0; layer < 3; ++layer) {
    ASSERT_EQ(weights[layer].size(), counts[layer]);
    double largest = 0, square = 0;
    for (const double weight : weights[layer]) {
      largest = std::max(largest, std::abs(weight));
      square += weight * weight;
    }
    EXPECT_LE(largest, bounds[layer]);
    EXPECT_GT(largest, 0.95 * bounds[layer]);
    EXPECT_NEAR(square / static_cast<double>(counts[layer]), bounds[layer] * bounds[layer] / 3,
                bounds[layer] * bounds[layer] * 0.3 * 4 / std::sqrt(counts[layer]));
  }
}

}  // namespace
}  // namespace convoy::experiments
