// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/answer_text.h"

#include <gtest/gtest.h>

#include "files/source_folder.h"

namespace convoy::generate {
namespace {

TEST(AnswerText, AStopStringIsFoundAcrossHiddenTokens) {
  const text::Tokenizer tokenizer =
      text::Tokenizer::load(testing::source_folder() / "examples/tally-3m");
  const int32_t hidden = tokenizer.id_of("<|im_start|>").value();
  ASSERT_TRUE(tokenizer.is_special(hidden));
  const auto id = [&](const char* letter) { return tokenizer.id_of(letter).value(); };
  const std::vector<int32_t> end_ids;
  for (const size_t num_hidden : {0, 1, 9, 40}) {
    AnswerText answer(tokenizer, end_ids, {.stop = {"42"}}, 100);
    EXPECT_FALSE(answer.take(id("7")));
    EXPECT_FALSE(answer.take(id("4")));
    for (size_t count = 0; count < num_hidden; ++count) EXPECT_FALSE(answer.take(hidden));
    EXPECT_EQ(answer.take(id("2")), FinishReason::Stop) << num_hidden << " hidden tokens";
    EXPECT_EQ(answer.text(), "7");
    EXPECT_EQ(answer.stop_string(), "42");
  }
  const std::vector<int32_t> nine = {id("9")};
  AnswerText ended(tokenizer, nine, {.stop = {"42", "5"}}, 100);
  EXPECT_FALSE(ended.take(id("4")));
  EXPECT_EQ(ended.stop_string(), "");
  EXPECT_EQ(ended.take(id("9")), FinishReason::Stop);
  EXPECT_EQ(ended.stop_string(), "");
}

}  // namespace
}  // namespace convoy::generate
