// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/slow_rank.h"

#include <gtest/gtest.h>

namespace convoy::telemetry {
namespace {

std::vector<std::string> watch(SlowRankWatch& slow, int64_t steps, double seconds,
                               const std::vector<double>& waits) {
  std::vector<std::string> said;
  for (int64_t step = 0; step < steps; ++step)
    if (const std::string sentence = slow.step(seconds, waits); !sentence.empty())
      said.push_back(sentence);
  return said;
}

TEST(SlowRank, OneAtHalfSpeedIsNamedOnceWithItsNumbers) {
  SlowRankWatch slow;
  const auto said = watch(slow, 100, 0.8, {0.42, 0.4, 0.0, 0.41});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(
      said[0],
      "rank 2 is slow: over 20 steps it computed for 0.8 s a step, the others for 0.39 s, and "
      "they waited 0.41 s for it");
}

TEST(SlowRank, OfTwoRanksTheOneThatDoesNotWait) {
  SlowRankWatch slow;
  const auto said = watch(slow, 21, 0.1, {0.001, 0.05});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].find("rank 0 is slow"), 0U);
}

TEST(SlowRank, EqualRanksAndShortSpikesAreNot) {
  SlowRankWatch slow;
  EXPECT_TRUE(watch(slow, 100, 0.8, {0.1, 0.12, 0.05}).empty());
  EXPECT_TRUE(watch(slow, 1, 3.0, {2.5, 2.5, 0}).empty());  // one slow step among twenty
  EXPECT_TRUE(watch(slow, 100, 0.8, {0.1, 0.12, 0.05}).empty());
  EXPECT_TRUE(watch(slow, 100, 0.8, {}).empty());
  EXPECT_TRUE(watch(slow, 100, 1e-5, {9e-6, 0}).empty());
}

TEST(SlowRank, IsNamedAgainAfterItKeptUp) {
  SlowRankWatch slow;
  EXPECT_EQ(watch(slow, 21, 0.8, {0.4, 0}).size(), 1U);
  EXPECT_EQ(watch(slow, 20, 0.8, {0, 0.4}).size(), 1U);  // now rank 0 is slow
  EXPECT_TRUE(watch(slow, 20, 0.4, {0.01, 0.01}).empty());
  EXPECT_EQ(watch(slow, 20, 0.8, {0, 0.4}).size(), 1U);
}

}  // namespace
}  // namespace convoy::telemetry
