// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_answer.h"

#include <gtest/gtest.h>

#include "files/source_folder.h"

namespace convoy::recipes {
namespace {

// A forced call behind thoughts: thoughts hold no calls, and the call is read where they end.
TEST(ApiAnswer, CallsStandBehindThoughts) {
  const text::Tokenizer tokenizer =
      text::Tokenizer::load(testing::source_folder() / "examples/tally-3m");
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)";
  for (const Thoughts thoughts : {Thoughts::Open, Thoughts::Possible}) {
    const std::string tag = thoughts == Thoughts::Open ? "" : "<think>";
    AnswerHead head;
    head.tool_format = ToolFormat::Hermes;
    head.thoughts = thoughts;
    generate::Completion completion;
    completion.text = tag + "I call " + call + "</think>\n\n" + call;
    completion.finish_reason = generate::FinishReason::Stop;
    const Json answer = whole_answer(head, {.ids = {{1}}}, {completion}, {}, tokenizer);
    const Json& choice = answer["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    EXPECT_EQ(choice["message"]["reasoning_content"], "I call " + call);
    EXPECT_TRUE(choice["message"]["content"].is_null()) << choice;
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], R"({"a": 1})");
  }
}

}  // namespace
}  // namespace convoy::recipes
