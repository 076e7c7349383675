// SPDX-License-Identifier: Apache-2.0
//
// Compares guess-and-check with an independent simulation in NumPy
// (tests/golden/sweep/make_ssm_guesses.py), within the errors of both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace convoy::experiments {
namespace {

struct Simulated {
  std::string parameters;
  double guesses = 0, accepted = 0, loss = 0, loss_variance = 0, prior_mean = 0, prior_variance = 0;
};

std::vector<Simulated> simulated_cases() {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") +
                     "/tests/golden/sweep/ssm_guesses.json");
  std::vector<Simulated> cases;
  for (const auto& each : nlohmann::json::parse(file))
    cases.push_back({each["parameters"].dump(), each["guesses"], each["accepted"], each["loss"],
                     each["loss_variance"], each["prior_mean"], each["prior_variance"]});
  return cases;
}

class EachPrecisionOfGoldenGuesses : public ::testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Ssm, EachPrecisionOfGoldenGuesses,
                         ::testing::Values(Precision::Exact, Precision::Fast));

TEST_P(EachPrecisionOfGoldenGuesses, AgreeWithAnIndependentSimulation) {
  constexpr double kGuesses = 1e6;
  for (const Simulated& golden : simulated_cases()) {
    const SsmWorkload workload(GetParam());
    const sweep::Cell cell{"gnc", 3, golden.parameters};
    const sweep::Tally tally = workload.guesses(cell)->run(1000, static_cast<uint64_t>(kGuesses));
    const auto accepted = static_cast<double>(tally.accepted);
    const double both = (accepted + golden.accepted) / (kGuesses + golden.guesses);
    EXPECT_NEAR(accepted / kGuesses, golden.accepted / golden.guesses,
                4 * std::sqrt(both * (1 - both) * (1 / kGuesses + 1 / golden.guesses)))
        << golden.parameters;
    EXPECT_NEAR(
        tally.mean(), golden.loss,
        4 * std::hypot(tally.standard_error(), std::sqrt(golden.loss_variance / golden.accepted)))
        << golden.parameters;
    const double prior_error = std::sqrt(golden.prior_variance / golden.guesses);
    EXPECT_NEAR(workload.reference(cell).prior_mean, golden.prior_mean, 4 * prior_error)
        << golden.parameters;
  }
}

// With w = e_1 a single normal number decides about a guess, so the accepted share is the same at
// every dimension.
TEST_P(EachPrecisionOfGoldenGuesses, AcceptAsOftenAsOneNormalAtOddDimensions) {
  for (const int64_t dim : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 31, 149, 299}) {
    const sweep::Cell cell{"gnc", dim,
                           fmt::format(R"({{"alpha": 0.5, "input_e1": true,
                                                 "student_dim": {}}})",
                                       dim)};
    const sweep::Tally tally = SsmWorkload(GetParam()).guesses(cell)->run(0, 1'000'000);
    const double p = 2.226654e-3;
    EXPECT_NEAR(static_cast<double>(tally.accepted), 1e6 * p, 4 * std::sqrt(1e6 * p)) << dim;
  }
}

}  // namespace
}  // namespace convoy::experiments
