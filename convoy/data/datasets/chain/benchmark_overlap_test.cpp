// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/benchmark_overlap.h"

#include <gtest/gtest.h>

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

BenchmarkIndex index_of(const std::vector<Json>& rows, OverlapConfig config = {}) {
  BenchmarkIndex index(config);
  for (const Json& row : rows) index.add(row);
  index.finish();
  return index;
}

const Json kQuestion = {{"question", "Zoe has 10 stickers, and loses 3 of them on Monday."},
                        {"answer", "7"}};

TEST(BenchmarkIndex, FindsATextWithinAnyTextOfARow) {
  const BenchmarkIndex index = index_of({{{"question", "short"}}, kQuestion});
  const Json chat = Json::parse(R"({"messages":[{"role":"user","content":
    "Solve:\nZOE has 10 stickers and loses 3 of them on monday! How many?"}]})");
  const std::optional<Overlap> found = index.find(chat);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->benchmark_row, 1);
  EXPECT_EQ(found->share, 1);
  EXPECT_EQ(found->text, kQuestion["question"]);
  EXPECT_EQ(index.rows(), 2);
  EXPECT_EQ(index.rows_without_text(), 1);
}

TEST(BenchmarkIndex, PunctuationDoesNotCount) {
  const BenchmarkIndex index =
      index_of({{{"text", "the quick brown fox jumps over the lazy dog"}}});
  for (const char* text : {"\u201cThe quick, brown fox\u201d jumps\u2014over the lazy dog\u2026",
                           "the-quick_brown/fox\u00a0jumps\u200bover \u00abthe lazy dog\u00bb"})
    EXPECT_TRUE(index.find({{"text", text}})) << text;
}

TEST(BenchmarkIndex, CountsTheShareOfATextsRuns) {
  const BenchmarkIndex index = index_of({kQuestion});  // 11 words: 4 runs of 8
  EXPECT_FALSE(index.find({{"text", "Zoe has 10 stickers and loses 3 of"}}));
  EXPECT_EQ(index.find({{"text", "Zoe has 10 stickers and loses 3 of them"}})->share, 0.5);
  EXPECT_FALSE(index.find({{"text", "Ann has 11 stickers and loses 4 of them on Monday."}}));
  // Both halves in different texts of a row count together, but no run spans two texts.
  EXPECT_EQ(index
                .find({{"a", "Zoe has 10 stickers and loses 3 of them"},
                       {"b", "stickers and loses 3 of them on Monday"}})
                ->share,
            0.75);
  EXPECT_FALSE(index.find({{"a", "Zoe has 10 stickers"}, {"b", "and loses 3 of them on"}}));
  EXPECT_TRUE(index_of({kQuestion}, {.ngram_words = 4, .share = 0.2})
                  .find({{"text", "a friend loses 3 of them on Monday"}}));
}

TEST(BenchmarkIndex, LeavesInstructionsOut) {
  const std::string instruction = "You are a careful teacher. Solve the problem step by step.";
  const BenchmarkIndex index =
      index_of({{{"system", instruction}, {"question", kQuestion["question"]}},
                {{"system", instruction}, {"question", "What is one and one?"}}});
  EXPECT_FALSE(index.find({{"text", instruction}}));
  EXPECT_TRUE(index.find(kQuestion));
  std::vector<Json> rows;
  for (int number = 0; number < 12; ++number)
    rows.push_back({{"question", "Answer with the letter of the right choice only: item " +
                                     std::to_string(number) + " of the list of twelve"}});
  const BenchmarkIndex alike = index_of(rows);
  EXPECT_FALSE(alike.find({{"text", "Answer with the letter of the right choice only: item 99"}}));
  EXPECT_EQ(alike.find(rows[7])->benchmark_row, 7);
}

TEST(BenchmarkIndex, TakesEachChineseCharacterAsAWord) {
  const BenchmarkIndex index = index_of({{{"question", "小明有十个苹果，吃了三个。"}}});
  EXPECT_TRUE(index.find({{"text", "题目：小明有十个苹果，吃了三个。还有几个？"}}));
  EXPECT_FALSE(index.find({{"text", "小红有五个梨，吃了两个。"}}));
}

}  // namespace
}  // namespace convoy::data
