// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/core/io/json_text.h"

namespace convoy::recipes {
namespace {

// Accepts the fields of functions in the schemas that transformers and pydantic make.
CallableFunction read_tool(const Json& tool, const std::string& place) {
  if (!tool.is_object()) throw ApiError(400, fmt::format("`{}` must be a function", place), place);
  FieldReader fields(tool, place);
  const Json& function = function_of(fields, place);
  fields.require_nothing_else();
  CallableFunction read;
  read.field = place + ".function";
  FieldReader of_function(function, read.field);
  read.name = of_function.text("name");
  if (read.name.empty())
    throw ApiError(400, fmt::format("`{}.name` must not be empty", read.field),
                   read.field + ".name");
  of_function.text("description");
  if (const Json* parameters = of_function.object("parameters")) read.parameters = *parameters;
  of_function.object("return");
  if (of_function.find("strict") != nullptr) read.strict = of_function.flag("strict");
  of_function.require_nothing_else();
  return read;
}

// `strict` is for the server: templates do not know it.
Json for_template(Json tools) {
  for (Json& tool : tools) tool["function"].erase("strict");
  return tools;
}

void read_named_function(const Json& choice, CallRules& rules) {
  FieldReader fields(choice, "tool_choice");
  FieldReader function(function_of(fields, "tool_choice"), "tool_choice.function");
  fields.require_nothing_else();
  const std::string name = function.text("name");
  function.require_nothing_else();
  std::erase_if(rules.functions, [&](const CallableFunction& one) { return one.name != name; });
  if (rules.functions.empty())
    throw ApiError(
        400, fmt::format("`tool_choice` names {}, which is not among the tools", io::shown(name)),
        "tool_choice", "invalid_value");
  rules.are_required = rules.is_single = true;
}

void read_choice(const Json& choice, CallRules& rules) {
  if (choice.is_object()) return read_named_function(choice, rules);
  if (choice != "auto" && choice != "required")
    FieldReader::refuse("tool_choice",
                        "\"auto\", \"none\", \"required\" or {\"type\": \"function\", "
                        "\"function\": {\"name\": ...}}",
                        choice);
  rules.are_required = choice == "required";
  if (rules.are_required && rules.functions.empty())
    throw ApiError(400, "`tool_choice` \"required\" needs `tools`", "tool_choice", "invalid_value");
}

}  // namespace

bool CallRules::bind() const {
  return are_required || is_single ||
         std::any_of(functions.begin(), functions.end(), [](const CallableFunction& function) {
           return function.strict.value_or(false);
         });
}

const Json& function_of(FieldReader& fields, const std::string& place) {
  const std::string type = fields.text("type");
  if (!type.empty() && type != "function")
    FieldReader::refuse(place + ".type", "\"function\"", type);
  const Json* function = fields.object("function");
  if (function == nullptr || !function->value("name", Json()).is_string())
    throw ApiError(400, fmt::format("`{}.function` must be an object with a `name`", place),
                   place + ".function");
  return *function;
}

AskedTools read_tools(FieldReader& fields) {
  const Json* tools = fields.find("tools");
  if (tools != nullptr && !tools->is_array())
    FieldReader::refuse("tools", "a list of functions", *tools);
  CallRules rules;
  for (size_t at = 0; tools != nullptr && at < tools->size(); ++at)
    rules.functions.push_back(read_tool((*tools)[at], fmt::format("tools[{}]", at)));
  rules.is_single = !fields.flag("parallel_tool_calls", true);
  const Json* choice = fields.find("tool_choice");
  if (choice != nullptr && *choice == "none") return {};
  if (choice != nullptr) read_choice(*choice, rules);
  if (rules.functions.empty()) return {};
  return {for_template(*tools), std::move(rules)};
}

}  // namespace convoy::recipes
