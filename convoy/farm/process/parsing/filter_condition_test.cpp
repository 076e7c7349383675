// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/filter_condition.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

const nlohmann::ordered_json kRow = {{"score", 0.8},     {"verified", "yes"},
                                     {"finish", "stop"}, {"votes", nullptr},
                                     {"tokens", 12},     {"has_answer", "yes"}};

TEST(FilterCondition, ComparesNumbersAndWords) {
  for (const char* text : {"score >= 0.8", "score>0.5", " score < 1 ", "score == 0.8",
                           "verified == yes", "verified != no", "finish == stop", "tokens <= 12"})
    EXPECT_TRUE(FilterCondition(text).holds(kRow)) << text;
  for (const char* text : {"score > 0.8", "score != 0.8", "verified == no", "tokens < 12"})
    EXPECT_FALSE(FilterCondition(text).holds(kRow)) << text;
}

TEST(FilterCondition, AnUnknownFigureIsUnequalAndNothingElse) {
  for (const char* text : {"votes >= 0", "votes < 1", "votes == 0", "vote_share >= 0"})
    EXPECT_FALSE(FilterCondition(text).holds(kRow)) << text;
  EXPECT_TRUE(FilterCondition("votes != 0").holds(kRow));
  EXPECT_FALSE(FilterCondition("verified == yes").holds({{"verified", nullptr}}));
}

TEST(FilterCondition, KnowsTheStageThatFindsItOut) {
  EXPECT_EQ(FilterCondition("score > 1").stage(), "evaluate");
  EXPECT_EQ(FilterCondition("verified == yes").stage(), "verify");
  EXPECT_EQ(FilterCondition("vote_share > 0.5").stage(), "vote");
  EXPECT_EQ(FilterCondition("tokens > 1").stage(), "");
}

TEST(FilterCondition, RefusesWhatItCanNotRead) {
  for (const char* text : {"", "score", "score >=", "score => 1", "scor >= 1", "score >= high",
                           "verified == maybe", "verified > no", "score >= 0.8 0.9"})
    EXPECT_THROW(FilterCondition{text}, ConfigError) << text;
}

}  // namespace
}  // namespace convoy::process
