// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/think_text.h"

#include <gtest/gtest.h>

namespace convoy::process {
namespace {

TEST(SplitThink, TellsThoughtsFromWhatIsSaid) {
  const ThinkText both = split_think("<think>\nhm\n</think>\n\nIt is 4.", false);
  EXPECT_EQ(both.think, "hm");
  EXPECT_EQ(both.said, "It is 4.");
  EXPECT_FALSE(both.is_open);
}

TEST(SplitThink, ATextWithoutThoughtsStaysAsItIs) {
  const ThinkText plain = split_think(" It is 4.\n", false);
  EXPECT_EQ(plain.think, "");
  EXPECT_EQ(plain.said, " It is 4.\n");
}

// Templates of DeepSeek-R1 end in "<think>\n", so the text begins inside.
TEST(SplitThink, ATextMayBeginInsideItsThoughts) {
  for (const bool told : {true, false}) {
    const ThinkText text = split_think("hm\n</think>\nIt is 4.", told);
    EXPECT_EQ(text.think, "hm");
    EXPECT_EQ(text.said, "It is 4.");
    EXPECT_FALSE(text.is_open);
  }
}

TEST(SplitThink, AThoughtThatNeverEndsIsOpenAndSaysNothing) {
  for (const auto& [text, told] :
       {std::pair<const char*, bool>{"<think>hm, \\boxed{3}", false}, {"hm, \\boxed{3}", true}}) {
    const ThinkText open = split_think(text, told);
    EXPECT_TRUE(open.is_open);
    EXPECT_EQ(open.think, "hm, \\boxed{3}");
    EXPECT_EQ(open.said, "");
  }
}

TEST(SplitThink, ThePromptAndTheTextMayBothOpen) {
  EXPECT_EQ(split_think("<think>\nhm</think>4", true).think, "hm");
}

TEST(WithoutCalls, TakesOutCallsAndLeavesText) {
  EXPECT_EQ(without_calls("<tool_call>\n{\"name\":\"f\",\"arguments\":{\"n\": 3}}\n</tool_call>"),
            "");
  EXPECT_EQ(without_calls("So.\n<tool_call>{\"a\": \"x </tool_call> y\"}</tool_call>\nDone"),
            "So.\n\nDone");
  EXPECT_EQ(without_calls("<tool_call>\n[{\"a\": 1}]\n</tool_call><tool_call>{}</tool_call>4"),
            "4");
  EXPECT_EQ(without_calls("4 <tool_call>{\"name\": \"cu"), "4 ");
  for (const char* text :
       {"Use the <tool_call> tag. It is 4.", "", "<tool_call>", "</tool_call> {4}"})
    EXPECT_EQ(without_calls(text), text);
}

TEST(SplitThink, TagsWithinTheAnswerAreText) {
  const ThinkText text = split_think("The tag <think> opens.", false);
  EXPECT_EQ(text.said, "The tag <think> opens.");
  EXPECT_FALSE(text.is_open);
}

TEST(OpensThink, LooksAtTheEndOfThePrompt) {
  EXPECT_TRUE(opens_think("<|Assistant|><think>\n"));
  EXPECT_FALSE(opens_think("<|Assistant|>"));
}

}  // namespace
}  // namespace convoy::process
