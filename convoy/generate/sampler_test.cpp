// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::generate {
namespace {

// Shares of the ids over many positions.
std::map<int32_t, double> shares(const std::vector<float>& logits, const SamplerConfig& config,
                                 int draws = 20000) {
  std::vector<DrawPoint> points;
  for (int i = 0; i < draws; ++i) points.push_back({.position = i});
  const auto width = static_cast<int64_t>(logits.size());
  std::map<int32_t, double> found;
  for (const int32_t id :
       sample_tokens(at::tensor(logits).expand({draws, width}), width, config, points))
    found[id] += 1.0 / draws;
  return found;
}

int32_t sample_token(const std::vector<float>& logits, const SamplerConfig& config,
                     const DrawPoint& point) {
  return sample_tokens(at::tensor(logits).unsqueeze(0), static_cast<int64_t>(logits.size()), config,
                       {point})
      .front();
}

// Logits whose softmax is 0.5, 0.25, 0.15, 0.1 for ids 2, 0, 3, 1.
const std::vector<float> kLogits{std::log(0.25f), std::log(0.1f), std::log(0.5f), std::log(0.15f)};

TEST(Sampler, GreedyTakesTheFirstOfTheMostLikely) {
  const std::vector<float> logits{1, 3, 3, 2};
  EXPECT_EQ(sample_token(logits, {.temperature = 0}, {}), 1);
}

TEST(Sampler, FollowsTheDistribution) {
  const auto found = shares(kLogits, {.seed = 5});
  EXPECT_NEAR(found.at(2), 0.5, 0.015);
  EXPECT_NEAR(found.at(0), 0.25, 0.015);
  EXPECT_NEAR(found.at(3), 0.15, 0.015);
  EXPECT_NEAR(found.at(1), 0.1, 0.015);
}

TEST(Sampler, TemperatureSharpens) {
  const auto found = shares(kLogits, {.temperature = 0.5});
  const double total = 0.25 + 0.0625 + 0.0225 + 0.01;
  EXPECT_NEAR(found.at(2), 0.25 / total, 0.015);
  EXPECT_NEAR(found.at(0), 0.0625 / total, 0.015);
}

TEST(Sampler, TopKKeepsTheMostLikely) {
  const auto found = shares(kLogits, {.top_k = 2});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(2), 2.0 / 3, 0.015);
  EXPECT_NEAR(found.at(0), 1.0 / 3, 0.015);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  EXPECT_EQ(shares(kLogits, {.top_p = 0.49}).size(), 1u);
  EXPECT_EQ(shares(kLogits, {.top_p = 0.6}).size(), 2u);
  EXPECT_EQ(shares(kLogits, {.top_p = 0.95}).size(), 4u);
  // The share is taken of what top-k left: 0.5 of 0.75 is two thirds.
  EXPECT_EQ(shares(kLogits, {.top_k = 2, .top_p = 0.6}).size(), 1u);
}

TEST(Sampler, SortsLargeVocabulariesOnlyAsFarAsNeeded) {
  std::vector<float> logits(5000,
                            0.0f);  // a flat nucleus, longer than the first part that is sorted
  for (size_t i = 0; i < 300; ++i) logits[i * 16] = 20.0f;
  const auto found = shares(logits, {.top_p = 0.999}, 3000);
  EXPECT_GT(found.size(), 290u);
  for (const auto& [id, share] : found) EXPECT_EQ(id % 16, 0);
}

TEST(Sampler, DrawsDependOnEveryCounterAndOnNothingElse) {
  const std::vector<float> flat(1000, 0.0f);
  const auto at = [&](uint64_t seed, DrawPoint point) {
    return sample_token(flat, {.seed = seed}, point);
  };
  const int32_t first = at(1, {.row = 2, .sample = 3, .position = 4});
  EXPECT_EQ(first, at(1, {.row = 2, .sample = 3, .position = 4}));
  EXPECT_NE(first, at(2, {.row = 2, .sample = 3, .position = 4}));
  EXPECT_NE(first, at(1, {.row = 3, .sample = 3, .position = 4}));
  EXPECT_NE(first, at(1, {.row = 2, .sample = 4, .position = 4}));
  EXPECT_NE(first, at(1, {.row = 2, .sample = 3, .position = 5}));
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  EXPECT_THROW(sample_token(std::vector<float>{1, std::nanf("")}, {}, {}), NumericError);
  EXPECT_THROW(sample_token(std::vector<float>{1, std::numeric_limits<float>::infinity()}, {}, {}),
               NumericError);
  EXPECT_EQ(sample_token(std::vector<float>{-std::numeric_limits<float>::infinity(), 1}, {}, {}),
            1);
}

}  // namespace
}  // namespace convoy::generate
