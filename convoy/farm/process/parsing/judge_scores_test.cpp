// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/judge_scores.h"

#include <gtest/gtest.h>

namespace convoy::process {
namespace {

TEST(ReadJsonScores, ReadsMembersByTheirNames) {
  const std::map<std::string, double> weights = {{"correctness", 0.5}, {"clarity", 0.5}};
  const JudgeScores read = read_json_scores(
      R"({"reason": "correctness: 0.1", "clarity": 1, "correctness": 0.6})", weights);
  EXPECT_EQ(read.score, 0.8);
  EXPECT_EQ(read.criteria.at("correctness"), 0.6);
  EXPECT_EQ(read_json_scores(R"({"clarity":"8/10","correctness":0})", weights).score, 0.4);
  for (const char* reply :
       {R"({"clarity":1})", R"({"clarity":1,"correctness":1.5})",
        R"({"clarity":1,"correctness":-1})", R"({"clarity":1,"correctness":null})",
        R"({"clarity":1,"correctness":0.)", "0.8", "[1]"})
    EXPECT_FALSE(read_json_scores(reply, weights).score) << reply;
}

const std::map<std::string, double> kWeights = {{"correctness", 0.4},
                                                {"step_by_step_clarity", 0.2},
                                                {"logical_coherence", 0.2},
                                                {"mathematical_precision", 0.2}};

TEST(ReadScore, ReadsSharesTenthsAndPercent) {
  const std::pair<const char*, double> readable[] = {{"0.8", 0.8},
                                                     {" 1", 1},
                                                     {"0", 0},
                                                     {"1.0", 1},
                                                     {".5", 0.5},
                                                     {"8/10", 0.8},
                                                     {"8 / 10", 0.8},
                                                     {"4/5", 0.8},
                                                     {"0.9/1.0", 0.9},
                                                     {"8 out of 10", 0.8},
                                                     {"80%", 0.8},
                                                     {"80 %", 0.8},
                                                     {"**0.9**", 0.9},
                                                     {"[0.7]", 0.7},
                                                     {"0.8.", 0.8},
                                                     {"0.8, a good one", 0.8},
                                                     {"0.8 - all steps", 0.8},
                                                     {"Score: 0.6", 0.6},
                                                     {"score 6/10", 0.6},
                                                     {"$0.8$", 0.8},
                                                     {"80\\%", 0.8},
                                                     {"7.5/10", 0.75},
                                                     {"0/10", 0},
                                                     {"\"0.4\",", 0.4},
                                                     {"(8/10)", 0.8},
                                                     {"~0.8", 0.8},
                                                     {"100%", 1}};
  for (const auto& [text, score] : readable) {
    const std::optional<double> found = read_score(text);
    ASSERT_TRUE(found.has_value()) << text;
    EXPECT_NEAR(*found, score, 1e-12) << text;
  }
}

TEST(ReadScore, LeavesUnreadWhatIsNoScore) {
  for (const char* text :
       {"",    "good",    "8",   "1.5", "110%", "12/10", "-0.5", "0.8-0.9",    "0.8 - 0.9",
        "0,8", "0.8.1",   "8/0", "8/",  "1e-1", "0.8x",  "N/A",  "0.8 to 0.9", "The score is 1",
        "3rd", "8/10/10", "NaN"})
    EXPECT_FALSE(read_score(text).has_value()) << text;
}

TEST(JudgeScores, ReadsTheReplyThatThePromptAsksFor) {
  const JudgeScores scores = read_judge_scores(
      "Correctness: 1.0 - the answer is right\n"
      "Step-by-step clarity: 0.5 - two steps are missing\n"
      "Logical coherence: 8/10 - fine\n"
      "Mathematical precision: 90% - fine\n",
      kWeights);
  EXPECT_DOUBLE_EQ(*scores.criteria.at("correctness"), 1);
  EXPECT_DOUBLE_EQ(*scores.criteria.at("step_by_step_clarity"), 0.5);
  EXPECT_DOUBLE_EQ(*scores.criteria.at("logical_coherence"), 0.8);
  EXPECT_DOUBLE_EQ(*scores.criteria.at("mathematical_precision"), 0.9);
  EXPECT_DOUBLE_EQ(*scores.score, 0.84);
}

TEST(JudgeScores, ReadsOtherShapes) {
  const char* replies[] = {
      "1. **Correctness**: 0.8\n2. **Step-by-Step Clarity**: 0.8\n3. **Logical Coherence:** 0.8\n"
      "4. **Mathematical Precision**: 0.8",
      "{\"correctness\": 0.8,\n\"step_by_step_clarity\": 0.8,\n\"logical_coherence\": 0.8,\n"
      "\"mathematical_precision\": 0.8}",
      "| Correctness | 0.8 |\n| Step by step clarity | 8/10 |\n| Logical coherence | 80% |\n"
      "| Mathematical precision | 0.8 |",
      "### Correctness\nScore: 0.8/1.0\n\n### Step-by-step clarity\n0.8\n\n### Logical coherence\n"
      "- 0.8\n\n### Mathematical precision:\n**0.8**",
      "Correctness (0.4): 0.8\r\nStep-by-step clarity (0.2): 0.8\r\nLogical coherence (20%): "
      "0.8\r\n"
      "Mathematical precision (0.2): 0.8\r\n",
      "Correctness = 0.8; Step-by-step clarity = 0.8; Logical coherence = 0.8; Mathematical "
      "precision = 0.8"};
  for (const char* reply : replies) {
    const JudgeScores scores = read_judge_scores(reply, kWeights);
    ASSERT_TRUE(scores.score.has_value()) << reply;
    EXPECT_EQ(*scores.score, 0.8) << reply;
  }
}

TEST(JudgeScores, OneUnreadCriterionLeavesTheScoreUnknown) {
  const JudgeScores scores = read_judge_scores(
      "Correctness: 9\nStep-by-step clarity: 0.5\nLogical coherence: 0.5\n"
      "Mathematical precision: 0.5\n",
      kWeights);
  EXPECT_FALSE(scores.criteria.at("correctness").has_value());
  EXPECT_DOUBLE_EQ(*scores.criteria.at("logical_coherence"), 0.5);
  EXPECT_FALSE(scores.score.has_value());
}

TEST(JudgeScores, ProseAboutACriterionIsNoScore) {
  const JudgeScores scores = read_judge_scores(
      "I look at correctness first.\nThe incorrectness: 0.1 of the argument\n"
      "Correctness: 0.7\nCorrectness: 0.1",
      {{"correctness", 1.0}});
  EXPECT_DOUBLE_EQ(*scores.score, 0.7);
}

}  // namespace
}  // namespace convoy::process
