// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_request.h"

#include <gtest/gtest.h>

namespace convoy::recipes {
namespace {

std::string chat_with(const std::string& fields) {
  return R"({"model":"m","messages":[{"role":"user","content":"a"}])" +
         (fields.empty() ? "" : "," + fields) + "}";
}

void expect_refused(ApiKind kind, const std::string& body, const std::string& parameter) {
  try {
    parse_api_request(kind, body);
    ADD_FAILURE() << "accepted: " << body;
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400) << body;
    const Json answer = error.body();
    const Json& found = answer["error"]["param"];
    EXPECT_EQ(found.is_null() ? "" : found.get<std::string>(), parameter) << error.what();
  }
}

TEST(ApiRequest, DefaultsAreThoseOfTheApi) {
  const ApiRequest chat = parse_api_request(ApiKind::Chat, chat_with(""));
  EXPECT_EQ(chat.sampling.temperature.value, 1.0);
  EXPECT_EQ(chat.sampling.top_p, 1.0);
  EXPECT_EQ(chat.sampling.n, 1);
  EXPECT_EQ(chat.sampling.max_new_tokens, 0);
  EXPECT_FALSE(chat.seed);
  EXPECT_FALSE(chat.streams);
  const ApiRequest text = parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":"a"})");
  EXPECT_EQ(text.sampling.max_new_tokens, 16);
}

TEST(ApiRequest, ReadsEveryField) {
  const ApiRequest request = parse_api_request(
      ApiKind::Chat,
      chat_with(R"("temperature":0.5,"top_p":0.9,"top_k":-1,"min_p":0.1,"repetition_penalty":1.1,)"
                R"("n":3,"stop":["x","y"],"seed":7,"max_tokens":5,"max_completion_tokens":6,)"
                R"("stream":true,"stream_options":{"include_usage":true},"user":"u",)"
                R"("chat_template_kwargs":{"enable_thinking":false},"frequency_penalty":0,)"
                R"("presence_penalty":0.0,"logit_bias":null,"response_format":{"type":"text"})"));
  EXPECT_EQ(request.sampling.temperature.value, 0.5);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.stop.names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.seed, 7);
  EXPECT_EQ(request.sampling.max_new_tokens, 6);
  EXPECT_TRUE(request.streams && request.reports_usage);
  EXPECT_EQ(request.template_kwargs["enable_thinking"], false);
}

TEST(ApiRequest, PromptsAreTextsOrIds) {
  const auto prompts = [](const std::string& prompt) {
    return parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":)" + prompt + "}")
        .prompts;
  };
  EXPECT_EQ(std::get<std::string>(prompts("\"a\"").at(0)), "a");
  EXPECT_EQ(prompts(R"(["a","b"])").size(), 2u);
  EXPECT_EQ(std::get<1>(prompts("[1,2]").at(0)), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(std::get<1>(prompts("[[1],[2,3]]").at(1)), (std::vector<int32_t>{2, 3}));
  for (const std::string wrong : {"[]", "null", "5", "[1,\"a\"]", "[-1]", "[[1.5]]", "{}"})
    expect_refused(ApiKind::Completion, R"({"model":"m","prompt":)" + wrong + "}", "prompt");
}

TEST(ApiRequest, RefusesWhatItDoesNotServe) {
  expect_refused(ApiKind::Chat, "no json", "");
  expect_refused(ApiKind::Chat, "[]", "");
  expect_refused(ApiKind::Chat, R"({"model":"m"})", "messages");
  expect_refused(ApiKind::Chat, R"({"model":"m","messages":[{"content":"a"}]})",
                 "messages[0].role");
  for (const std::string name :
       {"tools", "tool_choice", "functions", "top_logprobs", "audio", "store", "prediction"})
    expect_refused(ApiKind::Chat, chat_with("\"" + name + "\":\"x\""), name);
  for (const std::string name : {"temperature", "top_p", "n", "seed", "stop", "max_tokens",
                                 "stream", "min_p", "top_k", "repetition_penalty"})
    expect_refused(ApiKind::Chat, chat_with("\"" + name + "\":{}"), name);
  expect_refused(ApiKind::Chat, chat_with(R"("n":0)"), "n");
  expect_refused(ApiKind::Chat, chat_with(R"("logprobs":true,"stream":true)"), "logprobs");
  expect_refused(ApiKind::Completion, R"({"model":"m","prompt":"a","logprobs":3})", "logprobs");
  expect_refused(ApiKind::Completion, R"({"model":"m","prompt":"a","echo":true})", "echo");
}

}  // namespace
}  // namespace convoy::recipes
