// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/api_text.h"

#include <gtest/gtest.h>

namespace convoy::remote {
namespace {

using nlohmann::ordered_json;
using process::TextFinish;

TEST(ApiText, SendsChatsAndPlainTexts) {
  process::TextRequest request{.prompt = {.text = "1 + 1 ="},
                               .sampling = {.temperature = 0, .max_new_tokens = 9}};
  const ApiText plain = api_text(request, "m", {});
  EXPECT_EQ(plain.path, "/completions");
  EXPECT_EQ(plain.body, R"({"model":"m","max_tokens":9,"temperature":0.0,"prompt":"1 + 1 ="})");
  request.prompt = {.messages = {{{"role", "user"}, {"content", "1 + 1 = ?"}}}};
  request.sampling = {.temperature = 0.5,
                      .top_k = 7,
                      .min_p = 0.1,
                      .repetition_penalty = 1.1,
                      .max_new_tokens = 9,
                      .stop = {"END"}};
  request.draw = {.seed = 42, .row = 3, .sample = 1};
  const ApiText chat = api_text(request, "m", {{"enable_thinking", false}});
  EXPECT_EQ(chat.path, "/chat/completions");
  ordered_json body = ordered_json::parse(chat.body);
  EXPECT_EQ(body["messages"], request.prompt.messages);
  EXPECT_EQ(body["chat_template_kwargs"]["enable_thinking"], false);
  EXPECT_EQ(body["stop"], ordered_json({"END"}));
  EXPECT_EQ(body["top_k"], 7);
  EXPECT_EQ(body["min_p"], 0.1);
  EXPECT_EQ(body["repetition_penalty"], 1.1);
  const int64_t seed = body["seed"];
  EXPECT_GE(seed, 0);
  EXPECT_LE(seed, INT32_MAX);
  for (const char* of_the_text : {"messages", "seed", "chat_template_kwargs"})
    body.erase(of_the_text);
  EXPECT_EQ(ordered_json::parse(chat.settings), body);
  // The draw decides the seed, and nothing else does.
  request.number = 77;
  EXPECT_EQ(ordered_json::parse(api_text(request, "m", {}).body)["seed"], seed);
  request.draw.sample = 2;
  EXPECT_NE(ordered_json::parse(api_text(request, "m", {}).body)["seed"], seed);
  // A row's own variables replace those of the engine; tools are a field of the API.
  request.prompt.variables = {{"tools", {{{"name", "f"}}}}, {"depth", 2}};
  body = ordered_json::parse(api_text(request, "m", {{"enable_thinking", false}}).body);
  EXPECT_EQ(body["chat_template_kwargs"], ordered_json({{"depth", 2}}));
  EXPECT_EQ(body["tools"][0]["name"], "f");
  request.prompt = {.text = "\xff"};
  EXPECT_THROW(api_text(request, "m", {}), nlohmann::json::exception);
}

TEST(ApiText, ReadsTextsAndTheirEnds) {
  const auto chat = read_api_text(
      R"({"choices":[{"message":{"role":"assistant","content":"two"},"finish_reason":"stop"}],
          "usage":{"prompt_tokens":5,"completion_tokens":2}})");
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->text, "two");
  EXPECT_EQ(chat->finish, TextFinish::Stop);
  EXPECT_EQ(chat->prompt_tokens, 5);
  EXPECT_EQ(chat->new_tokens, 2);
  const auto plain = read_api_text(R"({"choices":[{"text":" 2","finish_reason":"length"}]})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->text, " 2");
  EXPECT_EQ(plain->finish, TextFinish::Length);
  const auto withheld = read_api_text(
      R"({"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]})");
  ASSERT_TRUE(withheld);
  EXPECT_EQ(withheld->finish, TextFinish::Error);
  EXPECT_FALSE(withheld->error_may_pass);
}

TEST(ApiText, PutsAThoughtBeforeItsText) {
  const auto text = [](const std::string& message) {
    return read_api_text(R"({"choices":[{"message":)" + message + R"(,"finish_reason":"stop"}]})")
        ->text;
  };
  EXPECT_EQ(text(R"({"reasoning_content":"one and one","content":"2"})"),
            "<think>one and one</think>2");
  EXPECT_EQ(text(R"({"reasoning":"one and","content":null})"), "<think>one and");
  EXPECT_EQ(text(R"({"reasoning_content":null,"content":"2"})"), "2");
}

TEST(ApiText, FindsNoTextInOtherBodies) {
  for (const char* body :
       {"", "<html>", "{}", "[]", "null", R"({"choices":[]})", R"({"choices":[7]})",
        R"({"choices":{"0":1}})", R"({"choices":[{"text":" 2"}]})",
        R"({"choices":[{"text":" 2","finish_reason":null}]})",
        R"({"choices":[{"text":" 2","finish_reason":"abort"}]})",
        R"({"choices":[{"message":"2","finish_reason":"stop"}]})",
        "{\"choices\":[{\"text\":\"\xff\",\"finish_reason\":\"stop\"}]}",
        R"({"choices":[{"text":" 2","finish_re)"})
    EXPECT_FALSE(read_api_text(body)) << body;
}

TEST(ApiText, TheLimitHasANewerName) {
  EXPECT_EQ(
      with_newer_limit(R"({"model":"m","max_tokens":5,"messages":[{"content":"max_tokens"}]})"),
      R"({"model":"m","max_completion_tokens":5,"messages":[{"content":"max_tokens"}]})");
}

}  // namespace
}  // namespace convoy::remote
