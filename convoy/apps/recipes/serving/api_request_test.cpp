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

TEST(ApiRequest, DefaultsAreTheUsualValues) {
  const ApiRequest chat = parse_api_request(ApiKind::Chat, chat_with(""));
  const settings::SamplingValues usual = settings::usual_sampling();
  EXPECT_EQ(chat.sampling.temperature, usual.temperature);
  EXPECT_EQ(chat.sampling.top_p, usual.top_p);
  EXPECT_EQ(chat.sampling.n, 1);
  EXPECT_EQ(chat.sampling.max_new_tokens, usual.max_new_tokens);
  EXPECT_FALSE(chat.seed);
  EXPECT_FALSE(chat.streams);
  const ApiRequest text = parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":"a"})");
  EXPECT_EQ(text.sampling.max_new_tokens, 16);  // the default of OpenAI's API
}

TEST(ApiRequest, TheModelsOwnSamplingCountsWhereTheRequestSaysNothing) {
  const settings::SamplingSources sources{
      .model = settings::read_model_sampling(
          {{"temperature", 0.7}, {"top_p", 0.8}, {"top_k", 20}, {"max_new_tokens", 9}}, "f")};
  const ApiRequest chat =
      parse_api_request(ApiKind::Chat, chat_with(R"("top_p":1,"top_k":null)"), sources);
  EXPECT_EQ(chat.sampling.temperature, 0.7);
  EXPECT_EQ(chat.sampling.top_p, 1.0);
  EXPECT_EQ(chat.sampling.top_k, 20);
  EXPECT_EQ(chat.sampling.max_new_tokens, 9);
  const ApiRequest text =
      parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":"a"})", sources);
  EXPECT_EQ(text.sampling.temperature, 0.7);
  EXPECT_EQ(text.sampling.max_new_tokens, 9);
}

TEST(ApiRequest, FieldsThatAskForNothingAreTaken) {
  const auto read = [](const std::string& fields) {
    return parse_api_request(ApiKind::Chat, chat_with(fields));
  };
  EXPECT_FALSE(read(R"("seed":-1)").seed);
  EXPECT_EQ(read(R"("seed":-5)").seed, -5);
  EXPECT_EQ(read(R"("top_p":0)").sampling.top_p, 1e-9);
  EXPECT_FALSE(read(R"("stream_options":{})").streams);
  EXPECT_NO_THROW(read(R"("functions":[],"function_call":"none")"));
  expect_refused(ApiKind::Chat, chat_with(R"("top_p":-0.1)"), "top_p");
  expect_refused(ApiKind::Chat, chat_with(R"("functions":[{"name":"f"}])"), "functions");
  expect_refused(ApiKind::Chat, chat_with(R"("function_call":{"name":"f"})"), "function_call");
}

TEST(ApiRequest, ReadsEveryField) {
  const ApiRequest request = parse_api_request(
      ApiKind::Chat,
      chat_with(R"("temperature":0.5,"top_p":0.9,"top_k":-1,"min_p":0.1,"repetition_penalty":1.1,)"
                R"("n":3,"stop":["x","y"],"seed":7,"max_tokens":6,"max_completion_tokens":6,)"
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

TEST(ApiRequest, FieldsOfOpenAisServiceThatChangeNothingAreTaken) {
  const std::string labels =
      R"("store":false,"service_tier":"auto","metadata":{"a":"b"},"prompt_cache_key":"k",)"
      R"("safety_identifier":"s","modalities":["text"],"user":"u")";
  const ApiRequest chat = parse_api_request(
      ApiKind::Chat, chat_with(labels + R"(,"reasoning_effort":"low","verbosity":"high",)"
                                        R"("stream":true,)"
                                        R"("stream_options":{"include_obfuscation":false})"));
  EXPECT_EQ(chat.template_kwargs, Json({{"reasoning_effort", "low"}, {"verbosity", "high"}}));
  EXPECT_EQ(parse_api_request(
                ApiKind::Chat,
                chat_with(R"("reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":)"
                          R"("high"})"))
                .template_kwargs["reasoning_effort"],
            "high");
  EXPECT_NO_THROW(
      parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":"a",)" + labels + "}"));
  expect_refused(ApiKind::Chat, chat_with(R"("store":true)"), "store");
  expect_refused(ApiKind::Chat, chat_with(R"("modalities":["text","audio"])"), "modalities");
  expect_refused(ApiKind::Chat, chat_with(R"("reasoning_effort":3)"), "reasoning_effort");
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
    return parse_api_request(ApiKind::Chat, chat_with(fields)).tools.tools;
  };
  EXPECT_EQ(tools_of(tools)[0]["function"]["name"], "f");
  EXPECT_EQ(tools_of(tools + R"(,"tool_choice":"auto","parallel_tool_calls":true)").size(), 1u);
  EXPECT_TRUE(tools_of(tools + R"(,"tool_choice":"none")").is_null());
  EXPECT_TRUE(tools_of(R"("tools":[],"tool_choice":"auto")").is_null());
  const auto expect_refused_tool = [](const std::string& tool, const std::string& parameter) {
    expect_refused(ApiKind::Chat, chat_with("\"tools\":[" + tool + "]"), parameter);
  };
  expect_refused_tool(R"({"type":"custom","function":{"name":"f"}})", "tools[0].type");
  expect_refused_tool(R"({"type":"function"})", "tools[0].function");
  expect_refused_tool("5", "tools[0]");
  expect_refused_tool(R"({"type":"function","function":{"name":""}})", "tools[0].function.name");
  expect_refused_tool(R"({"function":{"name":"f"},"cache":1})", "tools[0].cache");
  expect_refused_tool(R"({"function":{"name":"f","strict":1}})", "tools[0].function.strict");
  expect_refused_tool(R"({"function":{"name":"f","grammar":""}})", "tools[0].function.grammar");
  EXPECT_EQ(
      tools_of(R"("tools":[{"function":{"name":"f","description":null,"strict":false}}])").size(),
      1u);
}

TEST(ApiRequest, ToolsBindTheAnswerAsTheChoiceSays) {
  const std::string tools =
      R"("tools":[{"function":{"name":"f"}},{"function":{"name":"g","strict":true}}])";
  const auto rules_of = [](const std::string& fields) {
    return parse_api_request(ApiKind::Chat, chat_with(fields)).tools.rules;
  };
  EXPECT_FALSE(rules_of(R"("tools":[{"function":{"name":"f","strict":false}}])").bind());
  EXPECT_FALSE(rules_of(tools + R"(,"tool_choice":"none")").bind());
  EXPECT_FALSE(rules_of(R"("parallel_tool_calls":false)").bind());
  const CallRules strict = rules_of(tools);
  EXPECT_TRUE(strict.bind() && !strict.are_required && !strict.is_single);
  EXPECT_EQ(strict.functions[1].strict, true);
  EXPECT_TRUE(
      rules_of(R"("tools":[{"function":{"name":"f"}}],"parallel_tool_calls":false)").bind());
  const CallRules required = rules_of(tools + R"(,"tool_choice":"required")");
  EXPECT_TRUE(required.are_required && !required.is_single && required.functions.size() == 2);
  const CallRules named =
      rules_of(tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})");
  EXPECT_TRUE(named.are_required && named.is_single);
  ASSERT_EQ(named.functions.size(), 1u);
  EXPECT_EQ(named.functions[0].field, "tools[1].function");
  const Json shown = parse_api_request(ApiKind::Chat, chat_with(tools)).tools.tools;
  EXPECT_FALSE(shown[1]["function"].contains("strict")) << "templates do not know it";
  const auto expect_refused_choice = [&](const std::string& before, const std::string& choice) {
    expect_refused(ApiKind::Chat, chat_with(before + "\"tool_choice\":" + choice), "tool_choice");
  };
  expect_refused_choice("", R"("required")");
  expect_refused_choice(tools + ",", R"("any")");
  expect_refused_choice(tools + ",", R"({"function":{"name":"h"}})");
  expect_refused(ApiKind::Chat,
                 chat_with(tools + R"(,"tool_choice":{"type":"allowed_tools","tools":[]})"),
                 "tool_choice.type");
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
  expect_refused(ApiKind::Chat, messages_with("[5]"), "messages[0].tool_calls[0]");
  expect_refused(ApiKind::Chat, messages_with(R"([{"function":{"name":"f","arguments":5}}])"),
                 "messages[0].tool_calls[0].function.arguments");
  // A broken call that the model wrote does not end the conversation.
  for (const std::string broken : {"{", "5", "no JSON"})
    EXPECT_EQ(parse_api_request(
                  ApiKind::Chat,
                  messages_with(R"([{"function":{"name":"f","arguments":")" + broken + "\"}}]"))
                  .messages[0]["tool_calls"][0]["function"]["arguments"],
              Json({{"invalid_json", broken}}));
}

Json message_of(const std::string& message) {
  return parse_api_request(ApiKind::Chat, R"({"model":"m","messages":[)" + message +
                                              R"(,{"role":"user","content":"a"}]})")
      .messages.front();
}

void expect_refused_message(const std::string& fields, const std::string& parameter,
                            const std::string& words = {}) {
  try {
    message_of(R"({"role":"user",)" + fields + "}");
    ADD_FAILURE() << "accepted: " << fields;
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.body()["error"]["param"], parameter) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(ApiRequest, FieldsOfMessagesAreGivenToTheTemplateOrRefused) {
  // The openai package returns an answer in this form (model_dump()).
  const Json given_back = message_of(
      R"({"content":"a","refusal":null,"role":"assistant","annotations":[],"audio":null,)"
      R"("function_call":null,"tool_calls":null})");
  EXPECT_EQ(given_back["content"], "a");
  EXPECT_FALSE(given_back.contains("tool_calls"));
  const Json named = message_of(
      R"({"role":"tool","content":"3","name":"f","tool_call_id":"c","reasoning_content":"t"})");
  EXPECT_EQ(named["name"], "f");
  EXPECT_EQ(named["reasoning_content"], "t");
  // LangChain gives calls this form when it joins the pieces of a stream.
  const Json call = message_of(
      R"({"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c","type":"function",)"
      R"("function":{"name":"f","arguments":"{}"}}]})");
  EXPECT_EQ(call["tool_calls"][0]["index"], 0);
  expect_refused_message(R"("content":"a","colour":"red")", "messages[0].colour");
  expect_refused_message(R"("content":"a","audio":{"id":"x"})", "messages[0].audio");
  expect_refused_message(R"("content":"a","refusal":"no")", "messages[0].refusal");
  expect_refused_message(R"("content":"a","name":5)", "messages[0].name");
  expect_refused_message(
      R"("tool_calls":[{"function":{"name":"f","arguments":"{}"},"mood":"good"}])",
      "messages[0].tool_calls[0].mood");
}

TEST(ApiRequest, ContentsAreTexts) {
  EXPECT_EQ(
      message_of(R"({"role":"user","content":[{"type":"text","text":"a"}]})")["content"][0]["text"],
      "a");
  expect_refused_message(R"("content":5)", "messages[0].content", "must be a string");
  expect_refused_message(R"("content":{"text":"a"})", "messages[0].content",
                         "found an object of 1 keys");
  expect_refused_message(R"("content":null)", "messages[0].content", "is missing");
  expect_refused_message(
      R"("content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}])",
      "messages[0].content", "`messages[0].content[1]` must be");
  expect_refused_message(R"("content":["a"])", "messages[0].content", "found \"a\"");
  expect_refused_message(R"("content":[{"type":"text","text":5}])", "messages[0].content[0].text");
  expect_refused_message(R"("content":[{"type":"text"}])", "messages[0].content[0].text");
  expect_refused_message(R"("content":[{"type":"text","text":null}])",
                         "messages[0].content[0].text", "is missing");
  expect_refused_message(R"("content":[{"type":"text","text":"a","cache_control":{}}])",
                         "messages[0].content[0].cache_control");
}

TEST(ApiRequest, FieldsThatContradictEachOtherAreRefused) {
  expect_refused(ApiKind::Chat, chat_with(R"("max_tokens":5,"max_completion_tokens":6)"),
                 "max_tokens");
  expect_refused(ApiKind::Chat, chat_with(R"("stream_options":{"include_usage":true})"),
                 "stream_options");
  expect_refused(ApiKind::Chat, chat_with(R"("stream":true,"stream_options":{"pace":1})"),
                 "stream_options.pace");
  EXPECT_FALSE(parse_api_request(ApiKind::Chat, chat_with(R"("stream_options":null)")).streams);
}

TEST(ApiRequest, TemplatesGetNoVariableThatTheRequestSets) {
  const ApiRequest request = parse_api_request(
      ApiKind::Chat, chat_with(R"("chat_template_kwargs":{"enable_thinking":false})"));
  EXPECT_EQ(request.template_kwargs["enable_thinking"], false);
  for (const std::string own : {"messages", "tools", "add_generation_prompt"})
    expect_refused(ApiKind::Chat, chat_with("\"chat_template_kwargs\":{\"" + own + "\":null}"),
                   "chat_template_kwargs");
}

TEST(ApiRequest, RefusalsNameWhatIsServed) {
  try {
    parse_api_request(ApiKind::Chat, chat_with(R"("store":true)"));
    ADD_FAILURE();
  } catch (const ApiError& error) {
    EXPECT_STREQ(error.what(), "`store` is served as false alone, found true; leave it out");
  }
}

// Each of these values would take minutes, or be repeated as a whole in the answer.
TEST(ApiRequest, HugeValuesAreRefusedInAFewWords) {
  std::string biases = "\"0\":1";
  for (int id = 1; id < 500'000; ++id) biases += ",\"" + std::to_string(id) + "\":1";
  const std::string long_text = "\"" + std::string(1'000'000, 'a') + "\"";
  for (const std::string& fields :
       {"\"logit_bias\":{" + biases + "}", "\"chat_template_kwargs\":{" + biases + "}",
        "\"n\":" + long_text, "\"n\":[" + long_text + "]", "\"response_format\":" + long_text,
        "\"stop\":{" + biases + "}"}) {
    try {
      parse_api_request(ApiKind::Chat, chat_with(fields));
      ADD_FAILURE() << fields.substr(0, 30);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_LT(std::string(error.what()).size(), 200) << fields.substr(0, 30);
    }
  }
  expect_refused_message("\"content\":[" + long_text + "]", "messages[0].content", "...");
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
  for (const std::string role : {"User", "SYSTEM", "Assistant"})
    expect_refused(ApiKind::Chat,
                   R"({"model":"m","messages":[{"role":")" + role + R"(","content":"a"}]})",
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
  const auto completion_with = [](const std::string& fields) {
    return R"({"model":"m","prompt":"a",)" + fields + "}";
  };
  expect_refused(ApiKind::Completion, completion_with(R"("echo":1)"), "echo");
  expect_refused(ApiKind::Completion, completion_with(R"("echo":true,"stream":true)"), "echo");
  expect_refused(ApiKind::Completion, completion_with(R"("max_tokens":0)"), "max_tokens");
  expect_refused(ApiKind::Completion, completion_with(R"("max_tokens":0,"echo":true)"),
                 "max_tokens");
  expect_refused(ApiKind::Chat, chat_with(R"("echo":false)"), "echo");
  expect_refused(ApiKind::Chat, chat_with(R"("prompt_logprobs":21)"), "prompt_logprobs");
  expect_refused(ApiKind::Chat, chat_with(R"("prompt_logprobs":1,"stream":true)"),
                 "prompt_logprobs");
}

TEST(ApiRequest, ReadsWhatIsAskedOfThePrompt) {
  const auto completion = [](const std::string& fields) {
    return parse_api_request(ApiKind::Completion, R"({"model":"m","prompt":"a",)" + fields + "}");
  };
  const ApiRequest echo = completion(R"("echo":true,"logprobs":2,"max_tokens":0)");
  EXPECT_TRUE(echo.echoes_logprobs());
  EXPECT_EQ(echo.sampling.max_new_tokens.value, 0);
  EXPECT_FALSE(completion(R"("echo":true)").reads_prompt_logprobs());
  const ApiRequest chat =
      parse_api_request(ApiKind::Chat, chat_with(R"("prompt_logprobs":0,"max_tokens":0)"));
  EXPECT_EQ(chat.prompt_logprobs, 0);
  EXPECT_FALSE(parse_api_request(ApiKind::Chat, chat_with(R"("n":1)")).prompt_logprobs);
}

}  // namespace
}  // namespace convoy::recipes
