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
                R"("chat_template_kwargs":{"enable_thinking":false},"frequency_penalty":-2,)"
                R"("presence_penalty":0.5,"logit_bias":{"5":-100,"70":1.5},)"
                R"("response_format":{"type":"text"})"));
  EXPECT_EQ(request.sampling.temperature.value, 0.5);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.stop.names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.seed, 7);
  EXPECT_EQ(request.sampling.max_new_tokens, 6);
  EXPECT_TRUE(request.streams && request.reports_usage);
  EXPECT_EQ(request.template_kwargs["enable_thinking"], false);
  EXPECT_EQ(request.frequency_penalty, -2);
  EXPECT_EQ(request.presence_penalty, 0.5);
  ASSERT_EQ(request.logit_bias.size(), 2u);
  EXPECT_EQ(request.logit_bias[1].id, 70);
  EXPECT_EQ(request.logit_bias[1].bias, 1.5f);
}

TEST(ApiRequest, LogprobsAreAskedForInTwoForms) {
  const ApiRequest chat =
      parse_api_request(ApiKind::Chat, chat_with(R"("logprobs":true,"top_logprobs":20)"));
  EXPECT_TRUE(chat.sampling.logprobs);
  EXPECT_EQ(chat.top_logprobs, 20);
  for (const int64_t number : {0, 5}) {
    const ApiRequest text =
        parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":"a","logprobs":)" +
                                                   std::to_string(number) + "}");
    EXPECT_TRUE(text.sampling.logprobs);
    EXPECT_EQ(text.top_logprobs, number);
  }
}

TEST(ApiRequest, ToolsAreGivenUnlessNoneMayBeCalled) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  const auto tools_of = [](const std::string& fields) {
    return parse_api_request(ApiKind::Chat, chat_with(fields)).tools;
  };
  EXPECT_EQ(tools_of(tools)[0]["function"]["name"], "f");
  EXPECT_EQ(tools_of(tools + R"(,"tool_choice":"auto","parallel_tool_calls":true)").size(), 1u);
  EXPECT_TRUE(tools_of(tools + R"(,"tool_choice":"none")").is_null());
  EXPECT_TRUE(tools_of(R"("tools":[],"tool_choice":"auto")").is_null());
  expect_refused(ApiKind::Chat, chat_with(R"("tools":[{"type":"custom"}])"), "tools");
  expect_refused(ApiKind::Chat, chat_with(tools + R"(,"tool_choice":"required")"), "tool_choice");
}

TEST(ApiRequest, CallsOfFormerTurnsAreReadAsTemplatesReadThem) {
  const auto messages_with = [](const std::string& calls) {
    return R"({"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":)" + calls +
           R"(},{"role":"tool","tool_call_id":"c","content":"3"}]})";
  };
  const Json messages =
      parse_api_request(ApiKind::Chat,
                        messages_with(R"([{"id":"c","type":"function","function":)"
                                      R"({"name":"f","arguments":"{\"b\":1,\"a\":[]}"}}])"))
          .messages;
  EXPECT_EQ(messages[0]["content"], "");
  EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["arguments"].dump(), R"({"b":1,"a":[]})");
  EXPECT_EQ(messages[1]["tool_call_id"], "c");
  expect_refused(ApiKind::Chat, messages_with("5"), "messages[0].tool_calls");
  expect_refused(ApiKind::Chat, messages_with("[{}]"), "messages[0].tool_calls[0]");
  expect_refused(ApiKind::Chat, messages_with(R"([{"function":{"name":"f","arguments":"{"}}])"),
                 "messages[0].tool_calls[0].function.arguments");
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
       {"tools", "tool_choice", "functions", "audio", "store", "prediction", "parallel_tool_calls"})
    expect_refused(ApiKind::Chat, chat_with("\"" + name + "\":\"x\""), name);
  for (const std::string name : {"temperature", "top_p", "n", "seed", "stop", "max_tokens",
                                 "stream", "min_p", "top_k", "repetition_penalty"})
    expect_refused(ApiKind::Chat, chat_with("\"" + name + "\":{}"), name);
  expect_refused(ApiKind::Chat, chat_with(R"("n":0)"), "n");
  expect_refused(ApiKind::Chat, chat_with(R"("presence_penalty":2.1)"), "presence_penalty");
  for (const std::string bias :
       {"[]", R"({"a":1})", R"({"5":101})", R"({"-5":1})", R"({"5":"1"})", R"({"5":1,"05":1})"})
    expect_refused(ApiKind::Chat, chat_with("\"logit_bias\":" + bias), "logit_bias");
  expect_refused(ApiKind::Chat, chat_with(R"("top_logprobs":2)"), "top_logprobs");
  expect_refused(ApiKind::Chat, chat_with(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs");
  expect_refused(ApiKind::Completion, R"({"model":"m","prompt":"a","logprobs":6})", "logprobs");
  expect_refused(ApiKind::Completion, R"({"model":"m","prompt":"a","echo":true})", "echo");
}

}  // namespace
}  // namespace convoy::recipes
