// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/thought_reader.h"

#include <gtest/gtest.h>

namespace convoy::recipes {
namespace {

// The text taken as a whole, and letter by letter.
void expect_read(Thoughts before, const std::string& text, const std::string& thoughts,
                 const std::string& answer) {
  for (const size_t step : {text.size() + 1, size_t{1}}) {
    ThoughtReader reader(before);
    ThoughtReader::Found all;
    const auto add = [&all](const ThoughtReader::Found& found) {
      all.thoughts += found.thoughts;
      all.text += found.text;
    };
    for (size_t at = 0; at < text.size(); at += step) add(reader.take(text.substr(at, step)));
    add(reader.end());
    EXPECT_EQ(all.thoughts, thoughts) << text;
    EXPECT_EQ(all.text, answer) << text;
  }
}

TEST(ThoughtReader, DividesThoughtsFromTheAnswer) {
  expect_read(Thoughts::Possible, "<think>\na < b</think>{\"a\": 1}", "\na < b", "{\"a\": 1}");
  expect_read(Thoughts::Open, "so </thin</think>yes", "so </thin", "yes");
  expect_read(Thoughts::Open, "cut </thi", "cut </thi", "");
  expect_read(Thoughts::Possible, "<thin", "", "<thin");
  expect_read(Thoughts::Possible, "\"</think>\"", "", "\"</think>\"");
  expect_read(Thoughts::Possible, "", "", "");
  expect_read(Thoughts::None, "<think>a</think>", "", "<think>a</think>");
  expect_read(Thoughts::Open, "a</think>\"<think></think>\"", "a", "\"<think></think>\"");
}

TEST(ThoughtReader, GivesWhatIsCertainAtOnce) {
  ThoughtReader reader(Thoughts::Open);
  EXPECT_EQ(reader.take("ab<").thoughts, "ab");
  EXPECT_EQ(reader.take("c").thoughts, "<c");
  EXPECT_EQ(reader.take("</think>{").text, "{");
  EXPECT_EQ(reader.take("}").text, "}");
}

}  // namespace
}  // namespace convoy::recipes
