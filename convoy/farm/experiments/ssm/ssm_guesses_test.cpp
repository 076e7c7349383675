// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace convoy::experiments {
namespace {

constexpr const char* kE1 = R"("alpha": 0.5, "w": [1, 0, 0, 0])";
constexpr const char* kOnes = R"("alpha": 0.5, "w": [1, 1, 1, 1])";

sweep::Cell cell_of(const std::string& members, int64_t seed = 0) {
  return {"gnc", seed, "{" + members + "}"};
}

std::string with_dim(const std::string& members, int64_t dim) {
  return members + fmt::format(R"(, "student_dim": {})", dim);
}

sweep::Tally tally_of(const sweep::Cell& cell, uint64_t first, uint64_t count,
                      Precision precision = Precision::Exact, CpuLevel level = best_cpu_level()) {
  return SsmWorkload(precision, level).guesses(cell)->run(first, count);
}

void expect_probability(const sweep::Tally& tally, double p, const std::string& where) {
  const auto n = static_cast<double>(tally.guesses);
  EXPECT_NEAR(static_cast<double>(tally.accepted), n * p, 4 * std::sqrt(n * p * (1 - p))) << where;
}

class EachPrecisionOfGuesses : public ::testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Ssm, EachPrecisionOfGuesses,
                         ::testing::Values(Precision::Exact, Precision::Fast));

// The probability is Phi(.5 + sqrt(1e-5)) - Phi(.5 - sqrt(1e-5)) at every dimension.
TEST_P(EachPrecisionOfGuesses, AcceptAsOftenAsTheExactProbability) {
  for (const int64_t dim : {1, 3, 16, 150, 300, 301}) {
    const sweep::Cell cell = cell_of(with_dim(kE1, dim));
    const sweep::ReferenceCurve theory = SsmWorkload(GetParam()).reference(cell);
    EXPECT_NEAR(theory.acceptance, 2.226654e-3, 1e-9);
    expect_probability(tally_of(cell, 0, dim < 100 ? 2'000'000 : 3'000'000, GetParam()),
                       theory.acceptance, fmt::format("dim {}", dim));
  }
}

// The published acceptance of 1e9 guesses and the published losses (sweep.md section 3).
TEST_P(EachPrecisionOfGuesses, GiveThePublishedLosses) {
  struct Golden {
    int64_t dim;
    const char* members;
    double accepted, loss;
  };
  for (const Golden& golden : {Golden{150, kE1, 2.226654e-3, .58366},
                               {300, kE1, 2.226654e-3, .58266},
                               {150, kOnes, 2.452872e-3, .92376},
                               {300, kOnes, 2.488342e-3, .91140}}) {
    const sweep::Tally tally =
        tally_of(cell_of(with_dim(golden.members, golden.dim)), 77, 3'000'000, GetParam());
    expect_probability(tally, golden.accepted, golden.members);
    EXPECT_NEAR(tally.mean(), golden.loss, 4 * std::hypot(tally.standard_error(), 4e-4))
        << golden.members << " dim " << golden.dim;
    EXPECT_EQ(tally.non_finite, 0);
  }
}

TEST_P(EachPrecisionOfGuesses, GiveTheSameBitsForEverySplit) {
  const sweep::Cell cell = cell_of(with_dim(kOnes, 30) + R"(, "eps_train": 1e-2)");
  const SsmWorkload workload(GetParam());
  const auto experiment = workload.guesses(cell);
  const uint64_t first = (uint64_t{1} << 32) - 5000;  // the upper word changes
  const sweep::Tally whole = experiment->run(first, 10'000);
  EXPECT_GT(whole.accepted, 100);
  for (const uint64_t part : {1u, 7u, 16u, 333u, 4999u}) {
    sweep::Tally sum;
    for (uint64_t done = 0; done < 10'000; done += part)
      sum.merge(experiment->run(first + done, std::min<uint64_t>(part, 10'000 - done)));
    EXPECT_EQ(sum, whole) << part;
  }
}

TEST_P(EachPrecisionOfGuesses, GiveTheSameBitsAtEveryLevel) {
  for (const int64_t length : {2, 3, 4, 5, 6, 7, 8, 9, 17}) {
    for (const int64_t dim : {1, 2, 3, 7, 64, 150}) {
      const sweep::Cell cell = cell_of(
          fmt::format(R"("sequence_length": {}, "student_dim": {}, "eps_train": 0.5)", length, dim),
          length);
      const sweep::Tally wanted = tally_of(cell, 3, 700, GetParam(), CpuLevel::Scalar);
      EXPECT_GT(wanted.accepted, 0) << cell.parameters.str();
      for (const CpuLevel level : usable_cpu_levels())
        EXPECT_EQ(tally_of(cell, 3, 700, GetParam(), level), wanted)
            << cpu_level_name(level) << cell.parameters.str();
    }
  }
}

// eps_train is so large that every guess is accepted, so the mean over all guesses has a closed
// form.
TEST_P(EachPrecisionOfGuesses, AverageToTheExactPriorMean) {
  for (const char* members :
       {R"("student_dim": 150)", R"("student_dim": 7, "sequence_length": 9)",
        R"("student_dim": 3, "sequence_length": 4, "teacher_rank": 2)",
        R"("student_dim": 40, "teacher_rank": 5, "num_sequences": 2)",
        R"("student_dim": 1, "sequence_length": 2)", R"("student_dim": 301, "sequence_length": 8)",
        R"("student_dim": 4, "prior_sd": 1, "sequence_length": 3, "teacher_rank": 2)"}) {
    const sweep::Cell cell = cell_of(std::string(members) + R"(, "eps_train": 1e30)", 5);
    const sweep::Tally tally = tally_of(cell, 0, 200'000, GetParam());
    EXPECT_EQ(tally.accepted, tally.guesses);
    EXPECT_NEAR(tally.mean(), SsmWorkload(GetParam()).reference(cell).prior_mean,
                4.5 * tally.standard_error())
        << members;
  }
}

TEST_P(EachPrecisionOfGuesses, AgreeWithPlainArithmeticOnWhichGuessesPass) {
  const sweep::Cell cell = cell_of(
      R"("student_dim": 10, "sequence_length": 6, "num_sequences": 2, "eps_train": 0.02,
         "alpha": 0.3, "w": [[0, 1, 0, -2, 0], [0.5, 0, 0, 0, 3]])");
  sweep::Tally wanted;
  for (uint64_t guess = 0; guess < 20'000; ++guess) {
    std::vector<float> a(10);
    const Address address{stream_key(0, 0), Stream::Guess, GetParam(), guess};
    GetParam() == Precision::Exact ? fill_normals(address, 0, a)
                                   : fill_packed_normals(address, 0, a);
    double s[5];
    for (int m = 1; m <= 5; ++m) {
      s[m - 1] = -std::pow(0.3, m);
      for (const float each : a) s[m - 1] += std::pow(each / std::sqrt(10.0), m);
    }
    const double one = s[1] - 2 * s[3], two = 0.5 * s[0] + 3 * s[4];
    if ((one * one + two * two) / 2 >= 0.02) continue;
    ++wanted.accepted;
    double loss = 0;
    for (const double each : s) loss += each * each;
    wanted.loss.add(loss);
  }
  const sweep::Tally tally = tally_of(cell, 0, 20'000, GetParam());
  EXPECT_EQ(tally.accepted, wanted.accepted);
  EXPECT_NEAR(tally.loss.value(), wanted.loss.value(), 1e-4 * wanted.loss.value());
}

TEST(SsmGuesses, NarrowWeightsSeeOnlyTheirPower) {
  // Only fourth powers count: a guess is accepted if the sum of its a^4 is close to alpha^4.
  const sweep::Cell cell = cell_of(R"("alpha": 0.5, "w": [0, 0, 0, 1], "student_dim": 48)");
  const sweep::Tally tally = tally_of(cell, 0, 300'000);
  EXPECT_GT(tally.accepted, 0);
  EXPECT_TRUE(std::isnan(SsmWorkload().reference(cell).acceptance));
  EXPECT_TRUE(std::isnan(SsmWorkload().reference(cell).asymptote));
  const sweep::Tally all = tally_of(cell_of(R"("w": [0, 0, 0, 0])"), 0, 100);
  EXPECT_EQ(all.accepted, 100);
}

TEST(SsmGuesses, AllOutputsAverageOverTheirTimes) {
  // With k = 3 and s = (s1, s2) the three outputs see w1 s1 + w2 s2, w2 s1, and nothing; the loss
  // is their mean.
  const sweep::Cell cell = cell_of(
      R"("sequence_length": 3, "student_dim": 5, "w": [1, 2], "alpha": 0.5, "eps_train": 0.05,
         "calc_loss_only_on_last_output": false)");
  int64_t wanted = 0;
  for (uint64_t guess = 0; guess < 5000; ++guess) {
    std::vector<float> a(5);
    fill_normals({stream_key(0, 0), Stream::Guess, Precision::Exact, guess}, 0, a);
    double s1 = -0.5, s2 = -0.25;
    for (const float each : a) {
      s1 += each / std::sqrt(5.0);
      s2 += each * each / 5.0;
    }
    wanted += ((s1 + 2 * s2) * (s1 + 2 * s2) + 4 * s1 * s1) / 3 < 0.05;
  }
  EXPECT_EQ(tally_of(cell, 0, 5000).accepted, wanted);
}

TEST(SsmWorkload, VersionsNameThePrecision) {
  EXPECT_NE(SsmWorkload(Precision::Exact).version(), SsmWorkload(Precision::Fast).version());
}

TEST(SsmParameters, RefuseWhatTheyDoNotKnow) {
  for (const char* wrong :
       {"[]", R"({"student_dimm": 3})", R"({"student_dim": 0})", R"({"student_dim": 2.5})",
        R"({"w": [1, 2]})", R"({"w": []})", R"({"w": "x"})", R"({"input_e1": 1})",
        R"({"num_sequences": 2, "w": [1, 2, 3, 4]})", R"({"gd_optimizer": "sgdd"})",
        R"({"alpha": 0.5, "teacher_rank": 2})", R"({"w2_that_minimizes_loss": true})",
        R"({"sequence_length": 40})", R"({"eps_train": 0})"})
    EXPECT_THROW(SsmParameters::parse(wrong), ConfigError) << wrong;
}

TEST(SsmParameters, ReadBackWhatTheyWrite) {
  const std::string text =
      R"({"alpha":0.25,"gd_optimizer":"gd","num_sequences":2,"student_dim":12,)"
      R"("w":[[1.0,2.0,3.0,4.0],[0.0,1.0,0.0,0.1]],"w2_that_minimizes_loss":true})";
  EXPECT_EQ(SsmParameters::parse(text).json(), text);
  EXPECT_EQ(SsmParameters::parse("{}").json(), "{}");
  EXPECT_EQ(SsmParameters::parse(R"({"gd_epochs": 1e3})").descent.epochs, 1000);
}

}  // namespace
}  // namespace convoy::experiments
