// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::recipes {
namespace {

// {"type": "function", "function": {"name": ...}}, of a tool or a call.
bool is_function(const Json& json) {
  return json.is_object() && json.value("type", Json("function")) == "function" &&
         json.contains("function") && json["function"].is_object() &&
         json["function"].value("name", Json()).is_string();
}

[[noreturn]] void refuse_message(const std::string& place, const std::string& problem) {
  throw ApiError(400, fmt::format("`{}` {}", place, problem), place);
}

void read_tool_calls(Json& calls, const std::string& place) {
  if (!calls.is_array()) refuse_message(place, "must be a list of calls");
  for (size_t at = 0; at < calls.size(); ++at) {
    const std::string of_call = fmt::format("{}[{}]", place, at);
    if (!is_function(calls[at])) refuse_message(of_call, "must be a call of a function");
    Json& function = calls[at]["function"];
    Json arguments = function.value("arguments", Json());
    if (arguments.is_string())
      arguments = Json::parse(arguments.get<std::string>(), nullptr, false);
    if (!arguments.is_object())
      refuse_message(of_call + ".function.arguments", "must be a JSON object as a string");
    function["arguments"] = std::move(arguments);
  }
}

Json read_message(const Json& given, const std::string& place) {
  if (!given.is_object() || !given.value("role", Json()).is_string())
    refuse_message(place + ".role", "must be a string");
  Json message = given;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) return message;
  read_tool_calls(*calls, place + ".tool_calls");
  if (message.value("content", Json()).is_null()) message["content"] = "";
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

Json read_tools(FieldReader& fields) {
  const Json* tools = fields.find("tools");
  if (tools != nullptr &&
      (!tools->is_array() || !std::all_of(tools->begin(), tools->end(), is_function)))
    FieldReader::refuse("tools", "a list of functions", *tools);
  fields.require_neutral("tool_choice", {"auto", "none"});
  fields.require_neutral("parallel_tool_calls", {true});
  const Json* choice = fields.find("tool_choice");
  const bool calls_none = choice != nullptr && *choice == "none";
  return tools == nullptr || tools->empty() || calls_none ? Json() : *tools;
}

}  // namespace convoy::recipes
