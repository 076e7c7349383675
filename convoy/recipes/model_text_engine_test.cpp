// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/model_text_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "convoy/base/error.h"

namespace convoy::recipes {
namespace {

using process::TextFinish;
using process::TextRequest;
using process::TextResult;

class TextEngineOfAModel : public ::testing::Test {
 protected:
  TextEngineOfAModel()
      : loaded_(load_model(
            {.name = std::string(std::getenv("CONVOY_SOURCE_DIR")) + "/examples/tally-3m"},
            Log(LogLevel::Quiet))) {}

  static TextRequest sum(int64_t number, const std::string& question) {
    return {.number = number,
            .prompt = {.text = "Question: " + question + "\nAnswer:"},
            .sampling = {.temperature = 0, .max_new_tokens = 80},
            .draw = {.row = number}};
  }
  static std::map<int64_t, TextResult> finish(process::TextEngine& engine) {
    std::map<int64_t, TextResult> results;
    while (engine.unfinished() > 0)
      for (TextResult& result : engine.step()) results[result.number] = std::move(result);
    return results;
  }

  LoadedModel loaded_;
};

TEST_F(TextEngineOfAModel, AnswersTextsAndMessages) {
  const auto engine = make_text_engine(loaded_, {.rows = 3});
  engine->submit(sum(
      1, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  TextRequest chat = sum(2, "");
  chat.prompt = {.messages = {{{"role", "user"}, {"content", "Question: 1 + 1 = ?"}}}};
  engine->submit(chat);
  TextRequest stopped = sum(
      3, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?");
  stopped.sampling.stop = {"####"};
  engine->submit(stopped);
  EXPECT_EQ(engine->unfinished(), 3);
  auto results = finish(*engine);
  EXPECT_EQ(results[1].finish, TextFinish::Stop);
  EXPECT_TRUE(results[1].text.ends_with("#### 26")) << results[1].text;
  EXPECT_GT(results[1].prompt_tokens, 10);
  EXPECT_GT(results[1].new_tokens, 5);
  EXPECT_GT(results[2].new_tokens, 0);
  EXPECT_EQ(results[3].text, results[1].text.substr(0, results[1].text.find("####")));
  const process::EngineFigures figures = engine->figures();
  EXPECT_EQ(figures.running + figures.waiting, 0);
  EXPECT_GT(figures.decode_tokens, 0);
  EXPECT_GT(figures.prefill_tokens, 0);
}

TEST_F(TextEngineOfAModel, WhatCanNotBeAnsweredIsAnErrorOfItsOwn) {
  const auto engine = make_text_engine(loaded_, {.rows = 2});
  TextRequest endless = sum(1, std::string(200'000, 'x'));
  engine->submit(endless);
  TextRequest strange = sum(2, "1 + 1");
  strange.sampling.top_p = 0;
  engine->submit(strange);
  TextRequest refused = sum(3, "");
  refused.prompt = {.messages = {{{"no", "role"}}}};
  engine->submit(refused);
  engine->submit(sum(
      4, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  auto results = finish(*engine);
  ASSERT_EQ(results.size(), 4u);
  for (const int64_t number : {1, 2, 3}) {
    EXPECT_EQ(results[number].finish, TextFinish::Error) << number;
    EXPECT_FALSE(results[number].error.empty());
    EXPECT_FALSE(results[number].error_may_pass);
    EXPECT_TRUE(results[number].text.empty());
  }
  EXPECT_TRUE(results[4].text.ends_with("#### 26"));
}

TEST_F(TextEngineOfAModel, ACancelledRequestLeavesNothing) {
  const auto engine = make_text_engine(loaded_, {.rows = 2});
  for (int64_t number = 0; number < 4; ++number) engine->submit(sum(number, "1 + 1 = ?"));
  TextRequest strange = sum(4, "1 + 1");
  strange.sampling.top_p = 0;
  engine->submit(strange);
  engine->cancel(4);
  EXPECT_TRUE(engine->step().empty());
  engine->cancel(0);
  engine->cancel(3);
  engine->cancel(77);
  EXPECT_EQ(engine->unfinished(), 2);
  const auto results = finish(*engine);
  EXPECT_EQ(results.size(), 2u);
  engine->submit(sum(0, "1 + 1 = ?"));  // the number may be used again
  EXPECT_EQ(finish(*engine).size(), 1u);
  EXPECT_THROW(make_text_engine(loaded_, {.rows = 0}), ConfigError);
}

// 8 bits for keys, values and weights: sums are still right.
TEST_F(TextEngineOfAModel, FewBitsStillAnswer) {
  quantize_linears(*loaded_.model, "int8");
  const auto engine = make_text_engine(loaded_, {.kv_int8 = true});
  engine->submit(sum(
      1, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  EXPECT_TRUE(finish(*engine).at(1).text.ends_with("#### 26"));
}

}  // namespace
}  // namespace convoy::recipes
