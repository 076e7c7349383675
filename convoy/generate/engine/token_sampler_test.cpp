// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::generate {
namespace {

// Returns the share of each id among samples at many positions.
std::map<int64_t, double> shares(const std::vector<float>& logits, const Sampling& sampling,
                                 int draws = 20000) {
  std::vector<DrawPoint> points;
  for (int i = 0; i < draws; ++i)
    points.push_back({.sampling = sampling, .source = {.seed = 5}, .position = i});
  const auto width = static_cast<int64_t>(logits.size());
  std::map<int64_t, double> found;
  for (const auto& token : sample_tokens(at::tensor(logits).expand({draws, width}), width, points))
    found[token.id] += 1.0 / draws;
  return found;
}

int64_t sample_token(const std::vector<float>& logits, const DrawPoint& point) {
  return sample_tokens(at::tensor(logits).unsqueeze(0), static_cast<int64_t>(logits.size()),
                       {point})
      .front()
      .id;
}

// Logits whose softmax is 0.5, 0.25, 0.15, 0.1 for ids 2, 0, 3, 1.
const std::vector<float> kLogits{std::log(0.25f), std::log(0.1f), std::log(0.5f), std::log(0.15f)};

TEST(Sampler, GreedyTakesTheFirstOfTheMostLikely) {
  const std::vector<float> logits{1, 3, 3, 2};
  EXPECT_EQ(sample_token(logits, {.sampling = {.temperature = 0}}), 1);
}

TEST(Sampler, FollowsTheDistribution) {
  const auto found = shares(kLogits, {});
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
  // top-p counts the shares of the ids that top-k left: 0.5 of 0.75 is two thirds.
  EXPECT_EQ(shares(kLogits, {.top_k = 2, .top_p = 0.6}).size(), 1u);
}

TEST(Sampler, SortsLargeVocabulariesOnlyAsFarAsNeeded) {
  std::vector<float> logits(5000,
                            0.0f);  // a flat nucleus, longer than the part sorted first
  for (size_t i = 0; i < 300; ++i) logits[i * 16] = 20.0f;
  const auto found = shares(logits, {.top_p = 0.999}, 3000);
  EXPECT_GT(found.size(), 290u);
  for (const auto& [id, share] : found) EXPECT_EQ(id % 16, 0);
}

TEST(Sampler, DrawsDependOnEveryCounterAndOnNothingElse) {
  const std::vector<float> flat(1000, 0.0f);
  const auto at = [&](DrawSource source, int64_t position) {
    return sample_token(flat, {.source = source, .position = position});
  };
  const int64_t first = at({.seed = 1, .row = 2, .sample = 3}, 4);
  EXPECT_EQ(first, at({.seed = 1, .row = 2, .sample = 3}, 4));
  EXPECT_NE(first, at({.seed = 2, .row = 2, .sample = 3}, 4));
  EXPECT_NE(first, at({.seed = 1, .row = 3, .sample = 3}, 4));
  EXPECT_NE(first, at({.seed = 1, .row = 2, .sample = 4}, 4));
  EXPECT_NE(first, at({.seed = 1, .row = 2, .sample = 3}, 5));
}

TEST(Sampler, RowsFollowTheirOwnRules) {
  std::vector<DrawPoint> points;
  for (int64_t i = 0; i < 300; ++i)
    points.push_back({.sampling = i % 3 == 0   ? Sampling{.temperature = 0}
                                  : i % 3 == 1 ? Sampling{.top_k = 2}
                                               : Sampling{.top_p = 0.49},
                      .position = i});
  const auto found = sample_tokens(at::tensor(kLogits).expand({300, 4}), 4, points);
  bool saw_second = false;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i % 3 == 1)
      saw_second = saw_second || found[i].id == 0;
    else
      EXPECT_EQ(found[i].id, 2);
  }
  EXPECT_TRUE(saw_second);
}

TEST(Sampler, LogitsThatAreNoNumbersGiveNoToken) {
  EXPECT_EQ(sample_token({1, std::nanf("")}, {}), kernels::kNoToken);
  EXPECT_EQ(sample_token({1, std::numeric_limits<float>::infinity()}, {}), kernels::kNoToken);
  EXPECT_EQ(sample_token({-std::numeric_limits<float>::infinity(), 1}, {}), 1);
}

TEST(Sampler, RulesOutOfRangeAreRefused) {
  EXPECT_NO_THROW(check_sampling({}));
  EXPECT_THROW(check_sampling({.temperature = -1}), ConfigError);
  EXPECT_THROW(check_sampling({.temperature = std::nan("")}), ConfigError);
  EXPECT_THROW(check_sampling({.top_k = -1}), ConfigError);
  EXPECT_THROW(check_sampling({.top_p = 0}), ConfigError);
  EXPECT_THROW(check_sampling({.min_p = 1.5}), ConfigError);
  EXPECT_THROW(check_sampling({.repetition_penalty = 0}), ConfigError);
}

}  // namespace
}  // namespace convoy::generate
