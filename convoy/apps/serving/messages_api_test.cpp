// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/messages_api.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "convoy/apps/serving/messages_stream.h"

namespace convoy::serving {
namespace {

Json chat_of(const Json& request) {
  return Json::parse(engine_request(kMessagesPath, request.dump()).body);
}

Json asked(const Json& more) {
  Json request = {
      {"model", "m"}, {"max_tokens", 9}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  request.update(more);
  return request;
}

// The field of the error, or "none".
std::string refused(const Json& request, std::string_view path = kMessagesPath) {
  try {
    engine_request(path, request.dump());
  } catch (const ApiError& error) {
    return error.body()["error"]["param"].get<std::string>();
  }
  return "none";
}

TEST(MessagesApi, ARequestBecomesAChatRequest) {
  const EngineRequest request = engine_request(kMessagesPath, asked(Json::object()).dump());
  EXPECT_EQ(request.path, "/v1/chat/completions");
  EXPECT_EQ(request.body,
            R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":9})");
  const Json chat = chat_of(asked(Json::parse(R"({
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop_sequences": ["Q:"], "stream": true,
    "thinking": {"type": "disabled"}, "metadata": {"user_id": "u"},
    "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
    "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}],
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}}
  })")));
  EXPECT_EQ(chat["messages"][0]["role"], "system");
  EXPECT_EQ(chat["messages"][0]["content"][0]["text"], "Be brief.");
  EXPECT_EQ(chat["tools"][0].dump(),
            R"({"type":"function","function":{"name":"add","description":"Adds.",)"
            R"("parameters":{"type":"object"}}})");
  EXPECT_EQ(chat["tool_choice"], "required");
  EXPECT_EQ(chat["parallel_tool_calls"], false);
  EXPECT_EQ(chat["stop"], Json::array({"Q:"}));
  EXPECT_EQ(chat["stream_options"]["include_usage"], true);
  EXPECT_EQ(chat["chat_template_kwargs"]["enable_thinking"], false);
  EXPECT_EQ(chat["response_format"]["json_schema"]["schema"]["type"], "object");
  EXPECT_EQ(chat["response_format"]["json_schema"]["strict"], true);
  EXPECT_EQ(chat["reasoning_effort"], "low");
  for (const auto& [name, value] :
       std::map<std::string, double>{{"temperature", 0.5}, {"top_p", 0.9}, {"top_k", 3}})
    EXPECT_EQ(chat[name], value);
}

TEST(MessagesApi, BlocksOfCallsAndResultsBecomeTheirTurns) {
  const Json chat = chat_of(asked(Json::parse(R"({"messages": [
    {"role": "user", "content": "Add 1 and 2."},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "a sum", "signature": ""},
      {"type": "text", "text": "I add."},
      {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1, "b": 2}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "3"}]},
      {"type": "text", "text": "Well?"}]}]})")));
  EXPECT_EQ(
      chat["messages"].dump(),
      R"([{"role":"user","content":"Add 1 and 2."},)"
      R"({"role":"assistant","content":"I add.","reasoning_content":"a sum","tool_calls":)"
      R"([{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]},)"
      R"({"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"3"}]},)"
      R"({"role":"user","content":[{"type":"text","text":"Well?"}]}])");
}

TEST(MessagesApi, WhatAChatHasNotIsRefusedByItsField) {
  for (
      const auto& [more, field] : std::vector<std::pair<const char*, std::string>>{
          {R"({"max_tokens": null})", "max_tokens"},
          {R"({"max_tokens": 0})", "max_tokens"},
          {R"({"messages": []})", "messages"},
          {R"({"messages": [{"role": "system", "content": "a"}]})", "messages[0].role"},
          {R"({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]})",
           "messages[0].content[0].type"},
          {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
           "messages[0].content[0].text"},
          {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
           "messages"},
          {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
             {"type": "tool_result", "tool_use_id": "c", "content": "b"}]}]})",
           "messages[0].content[1]"},
          {R"({"messages": [{"role": "user", "content": [{"type": "tool_result",
             "tool_use_id": "c", "content": "b"}]}]})",
           "messages[0].content[0].tool_use_id"},
          {R"({"thread": {"type": "create"}})", "thread"},
          {R"({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})",
           "tools[0].type"},
          {R"({"tool_choice": {"type": "some"}})", "tool_choice.type"},
          {R"({"tool_choice": {"type": "tool"}})", "tool_choice.name"},
          {R"({"thinking": {"type": "enabled", "budget_tokens": 2048}})", "thinking.type"},
          {R"({"output_config": {"format": {"type": "xml"}}})", "output_config.format.type"},
          {R"({"container": "c"})", "container"},
          {R"({"temperature": 2})", "temperature"}})
    EXPECT_EQ(refused(asked(Json::parse(more))), field) << more;
  EXPECT_EQ(refused({{"max_tokens", 1}}), "model");
  EXPECT_EQ(refused(asked(Json::object()), kCountTokensPath), "max_tokens");
}

TEST(MessagesApi, AnAnswerBecomesAMessage) {
  const Json message = whole_message(Json::parse(R"({"id": "chatcmpl-5", "model": "m", "choices": [
    {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
      "reasoning_content": "a sum", "tool_calls": [{"id": "c1", "type": "function",
      "function": {"name": "add", "arguments": "{\"a\": 1}"}}]}}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 7,
      "prompt_tokens_details": {"cached_tokens": 32}}})"));
  EXPECT_EQ(message.dump(),
            R"({"id":"msg_5","type":"message","role":"assistant","model":"m","content":[)"
            R"({"type":"thinking","thinking":"a sum","signature":""},)"
            R"({"type":"tool_use","id":"c1","name":"add","input":{"a":1}}],)"
            R"("stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":8,)"
            R"("cache_creation_input_tokens":0,"cache_read_input_tokens":32,"output_tokens":7}})");
  EXPECT_EQ(stop_reason_of("stop", nullptr), "end_turn");
  EXPECT_EQ(stop_reason_of("stop", "Q:"), "stop_sequence");
  EXPECT_EQ(stop_reason_of("length", nullptr), "max_tokens");
  EXPECT_EQ(message_error(429, {{"error", {{"message", "full"}}}})["error"]["type"],
            "rate_limit_error");
}

TEST(MessagesApi, AnErrorNamesTheFieldOfTheMessage) {
  const auto said = [](const std::string& field, const std::string& form_field = {}) {
    const Json error = {{"error", {{"message", "`" + field + "`: too much"}, {"param", field}}}};
    return message_error(400, error, form_field)["error"]["message"].get<std::string>();
  };
  const std::string form = "response_format.json_schema.schema";
  EXPECT_EQ(said(form, "output_format"), "`output_format.schema`: too much");
  EXPECT_EQ(said("tools[1].function.parameters.type"), "`tools[1].input_schema.type`: too much");
  EXPECT_EQ(said("tools[0].function.strict"), "`tools[0].strict`: too much");
  EXPECT_EQ(said("tool_choice"), "`tool_choice`: too much");
  EXPECT_EQ(said("parallel_tool_calls"), "`tool_choice.disable_parallel_tool_use`: too much");

  const Json of_form = {{"type", "json_schema"}, {"schema", Json::object()}};
  for (const auto& [given, field] : std::map<std::string, Json>{
           {"output_format", {{"output_format", of_form}}},
           {"output_config.format", {{"output_config", {{"format", of_form}}}}}}) {
    const EngineRequest request = engine_request(kMessagesPath, asked(field).dump());
    EXPECT_EQ(request.form_field, given);
    const std::string events =
        MessagesStream(request.form_field)
            .take(R"(data: {"error":{"message":"`)" + form +
                  R"(`: no","type":"invalid_request_error","param":")" + form + "\"}}\n\n");
    EXPECT_NE(events.find("`" + given + ".schema`: no"), std::string::npos) << events;
    EXPECT_NE(events.find("invalid_request_error"), std::string::npos) << events;
  }
}

// The names of the events, with the type of the block or delta that they hold.
std::vector<std::string> event_names(const std::string& events) {
  std::vector<std::string> names;
  constexpr std::string_view kData = "\ndata: ";
  for (size_t at = events.find(kData); at != std::string::npos; at = events.find(kData, at + 1)) {
    const size_t begin = at + kData.size();
    const Json data = Json::parse(events.substr(begin, events.find('\n', begin) - begin));
    std::string name = data["type"];
    for (const char* const part : {"content_block", "delta"})
      if (data.contains(part) && data[part].contains("type"))
        name += " " + data[part]["type"].get<std::string>();
    names.push_back(name);
  }
  return names;
}

TEST(MessagesStream, PartsBecomeEventsHoweverTheyAreCut) {
  std::string stream;
  const auto add = [&stream](const std::string& choices, const std::string& usage = "null") {
    stream += R"(data: {"id":"chatcmpl-5","model":"m","choices":[)" + choices + R"(],"usage":)" +
              usage + "}\n\n";
  };
  const auto add_delta = [&](const std::string& delta, const std::string& end = "null") {
    add(R"({"index":0,"delta":)" + delta + R"(,"finish_reason":)" + end + "}");
  };
  add_delta(R"({"role":"assistant","content":""})");
  add_delta(R"({"reasoning_content":"a sum"})");
  add_delta(R"({"content":"I"})");
  add_delta(R"({"content":" add"})");
  add_delta(R"({"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}]})");
  add_delta("{}", R"("tool_calls")");
  add("",
      R"({"prompt_tokens":4,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":0}})");
  stream += "data: [DONE]\n\n";
  const std::vector<std::string> expected = {"message_start",
                                             "content_block_start thinking",
                                             "content_block_delta thinking_delta",
                                             "content_block_stop",
                                             "content_block_start text",
                                             "content_block_delta text_delta",
                                             "content_block_delta text_delta",
                                             "content_block_stop",
                                             "content_block_start tool_use",
                                             "content_block_delta input_json_delta",
                                             "content_block_stop",
                                             "message_delta",
                                             "message_stop"};
  for (const size_t bytes : {size_t{1}, size_t{7}, stream.size()}) {
    MessagesStream messages;
    std::string events;
    for (size_t at = 0; at < stream.size(); at += bytes)
      events += messages.take(stream.substr(at, bytes));
    EXPECT_EQ(event_names(events), expected) << bytes;
    EXPECT_NE(events.find(R"("stop_reason":"tool_use")"), std::string::npos);
    EXPECT_NE(events.find(R"("output_tokens":9)"), std::string::npos);
  }
  MessagesStream broken;
  EXPECT_EQ(event_names(broken.take("data: {\"error\": {\"message\": \"lost\"}}\n\n")),
            std::vector<std::string>{"error"});
}

}  // namespace
}  // namespace convoy::serving
