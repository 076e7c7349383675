// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_messages.h"

#include <fmt/format.h>

#include "convoy/apps/recipes/serving/api_tools.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/io/json_text.h"

namespace convoy::recipes {
namespace {

[[noreturn]] void refuse_message(const std::string& place, const std::string& problem) {
  throw ApiError(400, fmt::format("`{}` {}", place, problem), place);
}

// The client sends a model's broken JSON back with the conversation. The template then gets it as
// one text, so that the model sees what it wrote.
Json read_arguments(const std::string& text) {
  try {
    if (Json arguments = io::parse_json(text.empty() ? "{}" : text, ""); arguments.is_object())
      return arguments;
  } catch (const DataError&) {
  }
  return {{"invalid_json", text}};
}

void read_tool_call(Json& call, const std::string& place) {
  if (!call.is_object()) refuse_message(place, "must be a call of a function");
  FieldReader fields(call, place);
  FieldReader function(function_of(fields, place), place + ".function");
  fields.text("id");
  fields.find("index");  // clients use it to join the parts of a streamed call
  fields.require_nothing_else();
  function.text("name");
  const Json* given = function.find("arguments");
  function.require_nothing_else();
  if (given == nullptr || !(given->is_string() || given->is_object()))
    refuse_message(place + ".function.arguments", "must be a JSON object as a string");
  call["function"]["arguments"] = given->is_string() ? read_arguments(*given) : *given;
}

void read_tool_calls(Json& calls, const std::string& place) {
  if (!calls.is_array()) refuse_message(place, "must be a list of calls");
  for (size_t at = 0; at < calls.size(); ++at)
    read_tool_call(calls[at], fmt::format("{}[{}]", place, at));
}

// The template decides about roles. But a role in capitals, such as `User`, is refused: templates
// that write any role, as ChatML's do, would write it, and the model would not know the role.
void check_role(const std::string& role, const std::string& place) {
  for (const std::string_view known :
       {"system", "developer", "user", "assistant", "tool", "function"})
    if (role != known && lower_case(role) == known)
      refuse_message(place, fmt::format("must be \"{}\", found \"{}\"", known, role));
}

// The content may be a text or a list of text parts. Null: the turn has tool calls and no content.
void check_content(const Json* content, const std::string& place) {
  if (content == nullptr || content->is_string()) return;
  if (!content->is_array())
    FieldReader::refuse(place, "a string, or a list of parts of the type \"text\"", *content);
  for (size_t at = 0; at < content->size(); ++at) {
    const Json& part = (*content)[at];
    const std::string of_part = fmt::format("{}[{}]", place, at);
    if (!part.is_object() || part.value("type", Json()) != "text")
      throw ApiError(
          400,
          fmt::format("`{}` must be {{\"type\": \"text\", \"text\": ...}}, found {}; "
                      "convoy serve reads texts, no images, sounds or files",
                      of_part,
                      part.is_object() ? "the type " + io::shown(part.value("type", Json()))
                                       : io::shown(part)),
          place, "unsupported_parameter");
    FieldReader fields(part, of_part);
    fields.find("type");
    if (fields.find("text") == nullptr) refuse_message(of_part + ".text", "is missing");
    fields.text("text");
    fields.require_nothing_else();
  }
}

// Accepts the fields that vLLM (chat_utils.py), SGLang (ChatCompletionMessageGenericParam in
// protocol.py) and llama.cpp's server (chat.cpp) pass to templates under these names. Those servers
// drop all other fields silently.
void check_fields(const Json& message, const std::string& place) {
  FieldReader fields(message, place);
  fields.text("role");
  check_content(fields.find("content"), place + ".content");
  fields.text("name");
  fields.find("tool_calls");
  fields.text("tool_call_id");
  fields.text("reasoning_content");  // vLLM, SGLang, DeepSeek
  fields.text("reasoning");          // vLLM, OpenRouter
  // A client may send back an answer that the openai package got from OpenAI (model_dump()). That
  // message has these fields beside nulls.
  fields.require_neutral("annotations", {Json::array()});
  fields.require_neutral("refusal", {""});
  fields.require_nothing_else();
}

Json read_message(const Json& given, const std::string& place) {
  if (!given.is_object() || !given.value("role", Json()).is_string())
    refuse_message(place + ".role", "must be a string");
  check_role(given["role"].get<std::string>(), place + ".role");
  check_fields(given, place);
  Json message = Json::object();
  for (const auto& [name, value] : given.items())
    if (!value.is_null()) message[name] = value;
  if (message.contains("tool_calls")) {
    read_tool_calls(message["tool_calls"], place + ".tool_calls");
    if (!message.contains("content")) message["content"] = "";
  } else if (!message.contains("content")) {
    refuse_message(place + ".content", "is missing: it must be a string, or a list of texts");
  }
  return message;
}

}  // namespace

Json read_messages(FieldReader& fields) {
  const Json* given = fields.find("messages");
  if (given == nullptr || !given->is_array() || given->empty())
    throw ApiError(400, "`messages` must be a list of messages that is not empty", "messages");
  Json messages = Json::array();
  for (size_t at = 0; at < given->size(); ++at)
    messages.push_back(read_message((*given)[at], fmt::format("messages[{}]", at)));
  return messages;
}

Json read_template_kwargs(FieldReader& fields) {
  constexpr int64_t kMost = 64;
  Json variables = Json::object();
  for (const char* const name : {"reasoning_effort", "verbosity"})
    if (const std::string value = fields.text(name); !value.empty()) variables[name] = value;
  const Json* kwargs = fields.object("chat_template_kwargs");
  if (kwargs == nullptr) return variables;
  if (std::ssize(*kwargs) > kMost)
    throw ApiError(400,
                   fmt::format("`chat_template_kwargs` may have {} variables, found {}", kMost,
                               kwargs->size()),
                   "chat_template_kwargs", "invalid_value");
  for (const char* const own : {"messages", "tools", "add_generation_prompt"})
    if (kwargs->contains(own))
      throw ApiError(400,
                     fmt::format("`chat_template_kwargs` must not hold `{}`, which the request "
                                 "itself sets",
                                 own),
                     "chat_template_kwargs", "invalid_value");
  variables.update(*kwargs);
  return variables;
}

}  // namespace convoy::recipes
