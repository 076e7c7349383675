// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_descent.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "convoy/farm/experiments/ssm/ssm_theory.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace convoy::experiments {
namespace {

// Reads the results that tests/golden/sweep/make_ssm.py computed with NumPy and PyTorch.
nlohmann::json golden() {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") +
                     "/tests/golden/sweep/ssm.json");
  return nlohmann::json::parse(file);
}

TEST(SsmTheory, EqualsAnIndependentComputation) {
  for (const auto& wanted : golden()["theory"]) {
    const sweep::ReferenceCurve theory =
        ssm_theory(draw_problem(SsmParameters::parse(wanted["parameters"].dump()), 0));
    const auto expect_near = [&](double found, const char* key) {
      if (wanted[key].is_null()) {
        EXPECT_TRUE(std::isnan(found)) << wanted;
      } else {
        const double value = wanted[key];
        EXPECT_NEAR(found, value, 1e-8 * (1 + std::abs(value))) << key << wanted;
      }
    };
    expect_near(theory.prior_mean, "prior_mean");
    expect_near(theory.curve, "curve");
    expect_near(theory.asymptote, "asymptote");
  }
}

TEST(SsmDescent, EndsWhereAnIndependentOneEnds) {
  for (const auto& wanted : golden()["descent"]) {
    const SsmProblem problem = draw_problem(SsmParameters::parse(wanted["parameters"].dump()), 0);
    std::vector<double> weights(problem.student_dim);
    for (size_t at = 0; at < weights.size(); ++at)
      weights[at] = 0.3 * problem.parameters.descent.init_scale *
                        std::sin(1 + 1.7 * static_cast<double>(at)) +
                    wanted["centre"].get<double>();
    const sweep::CellOutcome outcome = descend_ssm(problem, weights);
    EXPECT_EQ(outcome.steps, wanted["steps"].get<int64_t>());
    const double loss = wanted["loss"], train_loss = wanted["train_loss"];
    EXPECT_NEAR(outcome.value, loss, 1e-6 * loss) << wanted;
    EXPECT_NEAR(outcome.train_loss, train_loss, 1e-6 * train_loss + 1e-12) << wanted;
  }
}

std::vector<sweep::Cell> cells_of(const std::string& members, int64_t first_seed, int64_t count) {
  std::vector<sweep::Cell> cells;
  for (int64_t seed = first_seed; seed < first_seed + count; ++seed)
    cells.push_back({"gd", seed, "{\"alpha\": 0.5, " + members + "}"});
  return cells;
}

// All coordinates get the same update, so the result is a(0) - mean(a(0)) + alpha / d.
TEST(SsmDescent, KeepsDifferencesOfWeightsWhenOnlyTheirSumIsSeen) {
  for (const int64_t dim : {7, 150, 300}) {
    for (const char* more : {"", R"(, "gd_init_type": "positive_diagonal")",
                             R"(, "gd_optimizer": "gd", "gd_lr": 1e-3)"}) {
      const auto cells =
          cells_of(fmt::format(R"("w": [1, 0, 0, 0], "student_dim": {}{})", dim, more), 3, 4);
      const std::vector<sweep::CellOutcome> outcomes = SsmWorkload().compute(cells);
      for (size_t at = 0; at < cells.size(); ++at) {
        const SsmProblem problem =
            draw_problem(SsmParameters::parse(cells[at].parameters), cells[at].seed);
        std::vector<double> weights = initial_weights(problem);
        const double d = problem.student_dim;
        const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / d;
        double loss = 0;
        for (int m = 1; m <= 4; ++m) {
          double s = -std::pow(0.5, m);
          for (const double weight : weights) s += std::pow(weight - mean + 0.5 / d, m);
          loss += s * s;
        }
        EXPECT_LT(outcomes[at].train_loss, 1e-6) << cells[at].parameters.str();
        EXPECT_NEAR(outcomes[at].value, loss, 1e-4) << cells[at].parameters.str();
        EXPECT_EQ(outcomes[at].steps, 9990);
      }
    }
  }
}

// The published means over 64 initial values, and the standard deviation of one (sweep.md section
// 3).
TEST(SsmDescent, HasThePublishedMeans) {
  struct Golden {
    const char* members;
    double mean, sd;
  };
  for (const Golden& golden :
       {Golden{R"("student_dim": 150, "w": [1, 0, 0, 0])", .0740, .0009},
        {R"("student_dim": 150, "w": [1, 1, 1, 1])", .2458, .0030},
        {R"("student_dim": 300, "w": [1, 0, 0, 0])", .0677, .0012},
        {R"("student_dim": 300, "w": [1, 1, 1, 1])", .2315, .0061},
        {R"("student_dim": 150, "w": [1, 0, 0, 0], "gd_init_type": "positive_diagonal")", .0785,
         .0004},
        {R"("student_dim": 150, "w": [1, 1, 1, 1], "gd_init_type": "positive_diagonal")", .2583,
         .0030},
        {R"("student_dim": 300, "w": [1, 0, 0, 0], "gd_init_type": "positive_diagonal")", .0764,
         .0006},
        {R"("student_dim": 300, "w": [1, 1, 1, 1], "gd_init_type": "positive_diagonal")", .2552,
         .0025}}) {
    const auto outcomes = SsmWorkload().compute(cells_of(golden.members, 0, 64));
    double mean = 0, square = 0;
    for (const sweep::CellOutcome& outcome : outcomes) {
      mean += outcome.value / 64;
      square += outcome.value * outcome.value / 64;
    }
    const double sd = std::sqrt(square - mean * mean);
    // Both numbers are means over 64 runs; the published ones are rounded to 5e-5.
    EXPECT_NEAR(mean, golden.mean, 4 * std::hypot(sd, golden.sd) / 8 + 5e-5) << golden.members;
  }
}

TEST(SsmDescent, StartsFromTheWantedWeights) {
  const auto weights_of = [](const char* type) {
    return initial_weights(draw_problem(
        SsmParameters::parse(fmt::format(
            R"({{"student_dim": 200, "gd_init_scale": 0.1, "gd_init_type": "{}"}})", type)),
        4));
  };
  const auto regular = weights_of("regular"), near_one = weights_of("near_one"),
             positive = weights_of("positive_diagonal"), largest = weights_of("double_max_A_j");
  const auto top = std::max_element(regular.begin(), regular.end()) - regular.begin();
  for (size_t at = 0; at < regular.size(); ++at) {
    EXPECT_NEAR(near_one[at], 1 + regular[at], 1e-12);
    EXPECT_EQ(positive[at], std::abs(regular[at]));
    EXPECT_EQ(largest[at], regular[at] * (static_cast<int64_t>(at) == top ? 5 : 1));
  }
}

// The chosen entries are compared with the definition of the asymptote: r = -alpha makes its last
// term zero.
TEST(SsmProblem, ChoosesSecondEntriesThatMinimizeTheLoss) {
  const auto theory_of = [](const std::string& members) {
    return SsmWorkload().reference({"gnc", 9, "{" + members + "}"});
  };
  const double alpha = 0.4;
  const double least = std::pow(1 - alpha * alpha, 2) + std::pow(alpha, 6) + std::pow(alpha, 8);
  EXPECT_NEAR(theory_of(R"("alpha": 0.4, "w_that_minimizes_loss": true)").asymptote, least, 1e-9);
  EXPECT_NEAR(
      theory_of(R"("alpha": 0.4, "num_sequences": 2, "w2_that_minimizes_loss": true)").asymptote,
      least, 1e-9);
  EXPECT_GT(
      theory_of(R"("alpha": 0.4, "num_sequences": 2, "w2_that_maximizes_loss": true)").asymptote,
      least + 1e-6);
}

TEST(SsmProblem, HasTheTeachersOfItsRank) {
  const SsmProblem two = draw_problem(
      SsmParameters::parse(R"({"teacher_rank": 3, "student_dim": 11, "teacher_sd": 0})"), 0);
  // The target has A = .5 three times, and two of them have the weight (11 - 1) / (3 - 1).
  for (uint32_t m = 1; m <= 4; ++m)
    EXPECT_NEAR(two.target[m - 1], std::pow(0.5, m) * (1 + 5 * 2), 1e-12);
  EXPECT_TRUE(std::isnan(two.alpha));
  const SsmProblem drawn = draw_problem(SsmParameters(), 1),
                   other = draw_problem(SsmParameters(), 2);
  EXPECT_NE(drawn.alpha, other.alpha);
  EXPECT_NE(drawn.w, other.w);
  EXPECT_NEAR(drawn.alpha, 0.5, 0.45);
}

}  // namespace
}  // namespace convoy::experiments
