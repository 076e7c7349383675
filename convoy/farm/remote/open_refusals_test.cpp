// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/open_refusals.h"

#include <gtest/gtest.h>

namespace convoy::remote {
namespace {

Refusal refusal(int64_t number, const std::string& settings, int status = 400) {
  return {.number = number, .settings = settings, .answer = {.status = status}};
}

TEST(OpenRefusals, AnAnswerExplainsTheRefusalsOfItsSettingsAlone) {
  OpenRefusals refusals({});
  refusals.add(refusal(1, "greedy"), false);
  refusals.add(refusal(2, "sampled"), false);
  refusals.add(refusal(3, "greedy"), false);
  const std::vector<Refusal> explained = refusals.explained_by_answer("greedy");
  ASSERT_EQ(explained.size(), 2U);
  EXPECT_EQ(explained[0].number, 1);
  EXPECT_EQ(explained[1].number, 3);
  EXPECT_TRUE(refusals.is_answered("greedy"));
  EXPECT_FALSE(refusals.is_answered("sampled"));
  EXPECT_EQ(refusals.take_first().number, 2);
  EXPECT_TRUE(refusals.empty());
}

TEST(OpenRefusals, ATextThatWasSentAgainStandsFirst) {
  OpenRefusals refusals({});
  refusals.add(refusal(1, "greedy"), false);
  refusals.add(refusal(2, "greedy"), true);
  EXPECT_EQ(refusals.take_first().number, 2);
  refusals.withdraw(1);
  EXPECT_TRUE(refusals.empty());
}

TEST(OpenRefusals, TakesRefusalsOfOneSense) {
  OpenRefusals refusals({});
  refusals.add(refusal(1, "greedy", 404), false);
  refusals.add(refusal(2, "greedy", 400), false);
  refusals.add(refusal(3, "greedy", 404), false);
  EXPECT_TRUE(refusals.take_alike("sampled", AnswerSense::OfAddress).empty());
  const std::vector<Refusal> alike = refusals.take_alike("greedy", AnswerSense::OfAddress);
  ASSERT_EQ(alike.size(), 2U);
  EXPECT_EQ(alike[1].number, 3);
  EXPECT_EQ(refusals.take_first().number, 2);
}

TEST(OpenRefusals, ARefusalConcernsEveryTextUntilATextWasAnswered) {
  OpenRefusals refusals({});
  EXPECT_TRUE(refusals.concerns_every_text(refusal(1, "greedy", 400)));
  EXPECT_TRUE(refusals.concerns_every_text(refusal(1, "greedy", 404)));
  refusals.explained_by_answer("sampled");
  EXPECT_TRUE(refusals.concerns_every_text(refusal(1, "greedy", 400)));
  EXPECT_FALSE(refusals.concerns_every_text(refusal(1, "sampled", 400)));
  EXPECT_FALSE(refusals.concerns_every_text(refusal(1, "greedy", 404)));
  EXPECT_TRUE(refusals.concerns_every_text(refusal(1, "sampled", 401)));
}

TEST(OpenRefusals, ManyEndsWithoutAnAnswerConcernEveryText) {
  OpenRefusals refusals([] { return true; });
  EXPECT_FALSE(refusals.concerns_every_text(refusal(1, "greedy")));
  for (int i = 0; i < 200; ++i) refusals.note_end();
  EXPECT_TRUE(refusals.has_ended());
  EXPECT_TRUE(refusals.concerns_every_text(refusal(1, "greedy")));
  refusals.explained_by_answer("greedy");
  EXPECT_FALSE(refusals.has_ended());
}

}  // namespace
}  // namespace convoy::remote
