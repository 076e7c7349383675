// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/question.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/schemas/schema.h"

namespace convoy::data {
namespace {

Question question_of(std::string_view row) {
  const Row value{nlohmann::ordered_json::parse(row), "rows.jsonl", 7, 6};
  return split_answer(convert_row(value, detect_schema(value, {}), {}).sample);
}

std::string refusal_of(std::string_view row) {
  try {
    question_of(row);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 7);
    return error.what();
  }
  return "no error";
}

TEST(SplitAnswer, TheReferenceIsTheTextOfTheLastTurn) {
  EXPECT_EQ(question_of(R"({"messages":[{"role":"user","content":"q"},
                            {"role":"assistant","content":"a"}]})")
                .reference,
            "a");
  const Question parts = question_of(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},
          {"role":"assistant","content":[{"type":"text","text":"4"},{"type":"text","text":"2"}]}]})");
  EXPECT_EQ(parts.reference, "42");
  EXPECT_EQ(parts.prompt.messages.size(), 1u);
  EXPECT_EQ(question_of(R"({"prompt":[{"role":"user","content":"q"}],
                            "completion":[{"role":"assistant","content":[
                              {"type":"text","text":"a"}]}]})")
                .reference,
            "a");
}

// The question must not contain the answer that the model is to give.
TEST(SplitAnswer, ThePromptHoldsNoAnswer) {
  const Question plain = question_of(R"({"prompt":"2 + 2 =","completion":" 4"})");
  EXPECT_EQ(plain.reference, " 4");
  EXPECT_EQ(plain.prompt.prompt + plain.prompt.completion, "2 + 2 =");
  const Question chat = question_of(R"({"messages":[{"role":"user","content":"q"},
      {"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]})");
  EXPECT_EQ(chat.reference, "b");
  EXPECT_EQ(chat.prompt.messages.size(), 2u);
  EXPECT_TRUE(chat.prompt.completion_messages.empty());
}

TEST(SplitAnswer, WhatHasNoAnswerIsRefusedWithItsPlace) {
  EXPECT_NE(refusal_of(R"({"messages":[{"role":"user","content":"q"}]})").find("last turn"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"messages":[{"role":"assistant","content":"a"}]})").find("no question"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"messages":[{"role":"user","content":"q"},{"role":"assistant",
      "content":null,"tool_calls":[{"function":{"name":"f"}}]}]})")
                .find("only calls tools"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"text":"t"})").find("plain text"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"prompt":[{"role":"user","content":"q"}],
                           "completion":[{"role":"tool","content":"t"}]})")
                .find("last turn"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::data
