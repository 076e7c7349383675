// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/messages_api.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "convoy/apps/serving/field_reader.h"
#include "convoy/core/io/json_text.h"

namespace convoy::serving {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

[[noreturn]] void refuse_value(const std::string& field, const std::string& problem) {
  throw ApiError(400, fmt::format("`{}` {}", field, problem), field, "invalid_value");
}

[[noreturn]] void refuse_block(const std::string& place, const std::string& type,
                               std::string_view known) {
  throw ApiError(400,
                 fmt::format("`{}` has the type {}; convoy serve reads {}", place,
                             type.empty() ? "null" : "\"" + type + "\"", known),
                 place + ".type", "unsupported_parameter");
}

const Json& require_field(FieldReader& fields, const std::string& name, const std::string& place) {
  const Json* const value = fields.find(name);
  if (value == nullptr) refuse_value(place.empty() ? name : place + "." + name, "is missing");
  return *value;
}

std::string require_text(FieldReader& fields, const std::string& name, const std::string& place) {
  require_field(fields, name, place);
  return fields.text(name);
}

// Hints for the caches of Anthropic's service. Prefixes are shared here without them.
void read_cache_control(FieldReader& fields) { fields.object("cache_control"); }

std::string type_of(const Json& block) {
  const Json type = block.is_object() ? block.value("type", Json()) : Json();
  return type.is_string() ? type.get<std::string>() : "";
}

Json text_part(const Json& block, const std::string& place) {
  FieldReader fields(block, place);
  fields.text("type");
  const std::string text = require_text(fields, "text", place);
  read_cache_control(fields);
  fields.require_neutral("citations", {Json::array()});
  fields.require_nothing_else();
  return {{"type", "text"}, {"text", text}};
}

// A content of texts alone: a string, or a list of text blocks.
Json text_content(const Json& content, const std::string& place) {
  if (content.is_string()) return content;
  if (!content.is_array())
    FieldReader::refuse(place, "a string, or a list of blocks of the type \"text\"", content);
  Json parts = Json::array();
  for (size_t at = 0; at < content.size(); ++at) {
    const std::string of_block = fmt::format("{}[{}]", place, at);
    if (type_of(content[at]) != "text")
      refuse_block(of_block, type_of(content[at]), "texts, no images or files");
    parts.push_back(text_part(content[at], of_block));
  }
  return parts;
}

// ---- messages ----

std::set<std::string> ids_of_calls(const Json& messages) {
  std::set<std::string> ids;
  for (const Json& message : messages)
    for (const Json& call : message.value("tool_calls", Json::array()))
      ids.insert(call.at("id").get<std::string>());
  return ids;
}

// `called`: ids of the calls in earlier turns.
Json tool_message(const Json& block, const std::string& place,
                  const std::set<std::string>& called) {
  FieldReader fields(block, place);
  fields.text("type");
  const std::string id = require_text(fields, "tool_use_id", place);
  if (!called.contains(id))
    refuse_value(place + ".tool_use_id",
                 fmt::format("is \"{}\", and no tool_use before it has this id", id));
  Json message = {{"role", "tool"}, {"tool_call_id", id}};
  const Json* const content = fields.find("content");
  message["content"] = content == nullptr ? Json("") : text_content(*content, place + ".content");
  // Templates have no place for it: the text of the result says what went wrong.
  fields.flag("is_error");
  read_cache_control(fields);
  fields.require_nothing_else();
  return message;
}

// Results of tools come first, as in a chat: they follow the turn that called.
void add_user_blocks(const Json& content, const std::string& place, Json& messages) {
  const std::set<std::string> called = ids_of_calls(messages);
  Json parts = Json::array();
  for (size_t at = 0; at < content.size(); ++at) {
    const std::string of_block = fmt::format("{}[{}]", place, at);
    const std::string type = type_of(content[at]);
    if (type == "text")
      parts.push_back(text_part(content[at], of_block));
    else if (type != "tool_result")
      refuse_block(of_block, type, "blocks of the types text and tool_result in a user's turn");
    else if (!parts.empty())
      refuse_value(of_block, "stands behind a text: results of tools come first in their turn");
    else
      messages.push_back(tool_message(content[at], of_block, called));
  }
  if (!parts.empty()) messages.push_back({{"role", "user"}, {"content", parts}});
}

Json tool_call(const Json& block, const std::string& place) {
  FieldReader fields(block, place);
  fields.text("type");
  const Json* const input = fields.object("input");
  Json call = {{"id", require_text(fields, "id", place)},
               {"type", "function"},
               {"function",
                {{"name", require_text(fields, "name", place)},
                 {"arguments", dumped(input == nullptr ? Json::object() : *input)}}}};
  read_cache_control(fields);
  fields.require_neutral("caller", {{{"type", "direct"}}});
  fields.require_nothing_else();
  return call;
}

std::string thoughts_of(const Json& block, const std::string& place) {
  FieldReader fields(block, place);
  fields.text("type");
  const std::string thoughts = require_text(fields, "thinking", place);
  fields.text("signature");  // Anthropic signs thoughts; here they are not signed
  fields.require_nothing_else();
  return thoughts;
}

void add_assistant_blocks(const Json& content, const std::string& place, Json& messages) {
  Json message = {{"role", "assistant"}, {"content", ""}};
  std::string text;
  std::string thoughts;
  Json calls = Json::array();
  for (size_t at = 0; at < content.size(); ++at) {
    const std::string of_block = fmt::format("{}[{}]", place, at);
    const std::string type = type_of(content[at]);
    if (type == "text")
      text += text_part(content[at], of_block)["text"].get<std::string>();
    else if (type == "thinking")
      thoughts += thoughts_of(content[at], of_block);
    else if (type == "tool_use")
      calls.push_back(tool_call(content[at], of_block));
    else
      refuse_block(of_block, type,
                   "blocks of the types text, thinking and tool_use in an assistant's turn");
  }
  message["content"] = text;
  if (!thoughts.empty()) message["reasoning_content"] = thoughts;
  if (!calls.empty()) message["tool_calls"] = calls;
  messages.push_back(std::move(message));
}

void add_message(const Json& given, const std::string& place, Json& messages) {
  if (!given.is_object()) FieldReader::refuse(place, "an object", given);
  FieldReader fields(given, place);
  const std::string role = fields.text("role");
  if (role != "user" && role != "assistant")
    refuse_value(place + ".role",
                 fmt::format("must be \"user\" or \"assistant\", found \"{}\"", role));
  const Json& content = require_field(fields, "content", place);
  fields.require_nothing_else();
  const std::string of_content = place + ".content";
  if (content.is_string())
    messages.push_back({{"role", role}, {"content", content}});
  else if (!content.is_array() || content.empty())
    FieldReader::refuse(of_content, "a string, or a list of blocks that is not empty", content);
  else if (role == "user")
    add_user_blocks(content, of_content, messages);
  else
    add_assistant_blocks(content, of_content, messages);
}

Json chat_messages(FieldReader& fields) {
  Json messages = Json::array();
  if (const Json* const system = fields.find("system"))
    if (const Json content = text_content(*system, "system"); !content.empty())
      messages.push_back({{"role", "system"}, {"content", content}});
  const Json* const given = fields.find("messages");
  if (given == nullptr || !given->is_array() || given->empty())
    refuse_value("messages", "must be a list of messages that is not empty");
  for (size_t at = 0; at < given->size(); ++at)
    add_message((*given)[at], fmt::format("messages[{}]", at), messages);
  if (messages.back()["role"] == "assistant")
    throw ApiError(
        400,
        "the last message is the assistant's; convoy serve does not continue a turn that "
        "has begun",
        "messages", "unsupported_parameter");
  return messages;
}

// ---- tools ----

Json chat_tool(const Json& given, const std::string& place) {
  if (!given.is_object()) FieldReader::refuse(place, "an object", given);
  FieldReader fields(given, place);
  if (const std::string type = fields.text("type"); !type.empty() && type != "custom")
    throw ApiError(400,
                   fmt::format("`{}.type` is \"{}\", a tool of Anthropic's service; convoy serve "
                               "has the tools of the client alone",
                               place, type),
                   place + ".type", "unsupported_parameter");
  Json function = {{"name", require_text(fields, "name", place)}};
  if (const std::string text = fields.text("description"); !text.empty())
    function["description"] = text;
  if (const Json* const schema = fields.object("input_schema")) function["parameters"] = *schema;
  if (fields.flag("strict")) function["strict"] = true;
  fields.require_neutral("allowed_callers", {Json::array({"direct"})});
  fields.require_neutral("defer_loading", {false});
  fields.flag("eager_input_streaming");  // a call's arguments come in one part
  read_cache_control(fields);
  fields.require_nothing_else();
  return {{"type", "function"}, {"function", function}};
}

void read_tool_choice(FieldReader& fields, Json& chat) {
  const Json* const given = fields.object("tool_choice");
  if (given == nullptr) return;
  FieldReader choice(*given, "tool_choice");
  const std::string type = choice.text("type");
  if (type == "tool")
    chat["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", require_text(choice, "name", "tool_choice")}}}};
  else if (type == "auto" || type == "none")
    chat["tool_choice"] = type;
  else if (type == "any")
    chat["tool_choice"] = "required";
  else
    refuse_value("tool_choice.type",
                 fmt::format("must be auto, any, tool or none, found \"{}\"", type));
  if (choice.flag("disable_parallel_tool_use")) chat["parallel_tool_calls"] = false;
  choice.require_nothing_else();
}

void read_tools(FieldReader& fields, Json& chat) {
  if (const Json* const tools = fields.find("tools")) {
    if (!tools->is_array()) FieldReader::refuse("tools", "a list of tools", *tools);
    chat["tools"] = Json::array();
    for (size_t at = 0; at < tools->size(); ++at)
      chat["tools"].push_back(chat_tool((*tools)[at], fmt::format("tools[{}]", at)));
  }
  read_tool_choice(fields, chat);
}

// ---- the rest ----

// The templates of thinking models know the variable `enable_thinking`.
void read_thinking(FieldReader& fields, Json& chat) {
  const Json* const given = fields.object("thinking");
  if (given == nullptr) return;
  FieldReader thinking(*given, "thinking");
  const std::string type = thinking.text("type");
  if (type == "enabled")
    throw ApiError(400,
                   "`thinking.budget_tokens` cannot be kept to: write {\"type\": \"adaptive\"} for "
                   "thoughts of any length within `max_tokens`, or {\"type\": \"disabled\"}",
                   "thinking.type", "unsupported_parameter");
  if (type != "adaptive" && type != "disabled")
    refuse_value("thinking.type", fmt::format("must be adaptive or disabled, found \"{}\"", type));
  thinking.require_neutral("display", {"summarized"});  // thoughts are shown whole
  thinking.require_nothing_else();
  chat["chat_template_kwargs"] = {{"enable_thinking", type == "adaptive"}};
}

// The effort and the form of the answer: `output_config`, and the form's older name
// `output_format`. Returns the field of the form; empty: none is asked for.
std::string read_output_config(FieldReader& fields, Json& chat) {
  const Json* form = fields.object("output_format");
  std::string place = "output_format";
  if (const Json* const config = fields.object("output_config")) {
    FieldReader of_config(*config, "output_config");
    if (const Json* const found = of_config.object("format")) {
      form = found;
      place = "output_config.format";
    }
    if (const std::string effort = of_config.text("effort"); !effort.empty())
      chat["reasoning_effort"] = effort;
    of_config.require_nothing_else();
  }
  if (form == nullptr) return {};
  FieldReader of_form(*form, place);
  if (const std::string type = of_form.text("type"); type != "json_schema")
    refuse_value(place + ".type", fmt::format("must be json_schema, found \"{}\"", type));
  const Json* const schema = of_form.object("schema");
  if (schema == nullptr) refuse_value(place + ".schema", "is missing");
  of_form.require_nothing_else();
  chat["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "answer"}, {"schema", *schema}, {"strict", true}}}};
  return place;
}

void read_sampling(FieldReader& fields, Json& chat) {
  require_field(fields, "max_tokens", "");
  chat["max_tokens"] = fields.integer("max_tokens", 1, 1, kMost);
  if (fields.find("temperature") != nullptr)
    chat["temperature"] = fields.number("temperature", 1, 0, 1);
  if (fields.find("top_p") != nullptr) chat["top_p"] = fields.number("top_p", 1, 0, 1);
  if (fields.find("top_k") != nullptr) chat["top_k"] = fields.integer("top_k", 0, 0, kMost);
  if (const Json* const stop = fields.find("stop_sequences"); stop != nullptr && !stop->empty())
    chat["stop"] = *stop;
}

// Labels for bills and logs of Anthropic's service, which change no answer.
void read_service_fields(FieldReader& fields) {
  fields.object("metadata");
  fields.require_neutral("service_tier", {"auto", "standard_only"});
  fields.require_neutral("speed", {"standard"});
  if (fields.find("thread") != nullptr)
    throw ApiError(400,
                   "`thread` is not served: convoy serve keeps no conversations; leave it out "
                   "(`thread=False` of the anthropic package's tool_runner)",
                   "thread", "unsupported_parameter");
  read_cache_control(fields);
}

EngineRequest chat_request(const Json& given) {
  FieldReader fields(given);
  Json chat = {{"model", require_text(fields, "model", "")}};
  chat["messages"] = chat_messages(fields);
  read_tools(fields, chat);
  read_thinking(fields, chat);
  const std::string form_field = read_output_config(fields, chat);
  read_sampling(fields, chat);
  if (fields.flag("stream")) {
    chat["stream"] = true;
    chat["stream_options"] = {{"include_usage", true}};
  }
  read_service_fields(fields);
  fields.require_nothing_else();
  return {"/v1/chat/completions", dumped(chat), form_field};
}

Json count_request(const Json& given) {
  FieldReader fields(given);
  Json chat = {{"model", require_text(fields, "model", "")}};
  chat["messages"] = chat_messages(fields);
  read_tools(fields, chat);
  read_thinking(fields, chat);
  read_cache_control(fields);
  fields.require_nothing_else();
  return chat;
}

const char* message_error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// The field of a message for a field of the chat that an engine names.
std::string message_field(const std::string& field, std::string_view form_field) {
  constexpr std::string_view kForm = "response_format.json_schema";
  constexpr std::string_view kFunction = "].function";
  constexpr std::string_view kParameters = ".parameters";
  if (field.starts_with(kForm)) return std::string(form_field) + field.substr(kForm.size());
  if (field == "parallel_tool_calls") return "tool_choice.disable_parallel_tool_use";
  if (field == "stop") return "stop_sequences";
  if (field == "reasoning_effort") return "output_config.effort";
  const size_t at = field.find(kFunction);
  if (!field.starts_with("tools[") || at == std::string::npos) return field;
  std::string within = field.substr(at + kFunction.size());
  if (within.starts_with(kParameters)) within.replace(0, kParameters.size(), ".input_schema");
  return field.substr(0, at + 1) + within;
}

std::string in_client_words(std::string message, const Json& field, std::string_view form_field) {
  if (!field.is_string()) return message;
  const std::string named = "`" + field.get<std::string>() + "`";
  const std::string wanted = "`" + message_field(field.get<std::string>(), form_field) + "`";
  for (size_t at = message.find(named); at != std::string::npos;
       at = message.find(named, at + wanted.size()))
    message.replace(at, named.size(), wanted);
  return message;
}

}  // namespace

bool speaks_messages(std::string_view path) {
  return path == kMessagesPath || path == kCountTokensPath;
}

EngineRequest engine_request(std::string_view path, std::string_view body) {
  const Json given = parse_object(body);
  if (path == kCountTokensPath) return {"/tokenize", dumped(count_request(given))};
  return chat_request(given);
}

Json stop_reason_of(const Json& finish_reason, const Json& stop_string) {
  if (finish_reason == "stop") return stop_string.is_string() ? "stop_sequence" : "end_turn";
  if (finish_reason == "length") return "max_tokens";
  if (finish_reason == "tool_calls") return "tool_use";
  return finish_reason;  // a reason that Anthropic's service does not have
}

Json message_usage(const Json& usage) {
  const int64_t cached = usage.at("prompt_tokens_details").value("cached_tokens", int64_t{0});
  return {{"input_tokens", usage.at("prompt_tokens").get<int64_t>() - cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", usage.at("completion_tokens")}};
}

std::string message_id(const std::string& answer_id) {
  return "msg_" + answer_id.substr(answer_id.find('-') + 1);
}

Json whole_message(const Json& answer) {
  const Json& choice = answer.at("choices").front();
  const Json& said = choice.at("message");
  Json content = Json::array();
  if (const std::string thoughts = said.value("reasoning_content", ""); !thoughts.empty())
    content.push_back({{"type", "thinking"}, {"thinking", thoughts}, {"signature", ""}});
  if (const Json& text = said.at("content"); text.is_string() && !text.get<std::string>().empty())
    content.push_back({{"type", "text"}, {"text", text}});
  for (const Json& call : said.value("tool_calls", Json::array()))
    content.push_back(
        {{"type", "tool_use"},
         {"id", call.at("id")},
         {"name", call.at("function").at("name")},
         {"input", Json::parse(call.at("function").at("arguments").get<std::string>())}});
  const Json stop_string = choice.value("stop_reason", Json());
  return {{"id", message_id(answer.at("id"))},
          {"type", "message"},
          {"role", "assistant"},
          {"model", answer.at("model")},
          {"content", content},
          {"stop_reason", stop_reason_of(choice.at("finish_reason"), stop_string)},
          {"stop_sequence", stop_string},
          {"usage", message_usage(answer.at("usage"))}};
}

Json token_count(const Json& answer) { return {{"input_tokens", answer.at("count")}}; }

Json message_error(int status, const Json& error, std::string_view form_field) {
  const Json& what = error.at("error");
  return {{"type", "error"},
          {"error",
           {{"type", message_error_type(status)},
            {"message", in_client_words(what.value("message", ""), what.value("param", Json()),
                                        form_field)}}}};
}

}  // namespace convoy::serving
