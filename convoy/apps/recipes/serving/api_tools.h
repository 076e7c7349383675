// SPDX-License-Identifier: Apache-2.0
//
// The tools of a chat, and how its answer must call them. Plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/serving/api_fields.h"

namespace convoy::recipes {

// A function that an answer may call.
struct CallableFunction {
  std::string name;
  Json parameters;                  // a JSON Schema; null: none was given
  std::optional<bool> strict = {};  // whether its arguments must match the schema, when given
  std::string field = {};           // its place in the request, for errors
};

struct CallRules {
  std::vector<CallableFunction> functions = {};
  bool are_required = false;  // the answer consists of calls
  bool is_single = false;     // it has one call at most

  // False when any answer will do.
  bool bind() const;
};

struct AskedTools {
  Json tools;  // for the template; null: the answer may call none
  CallRules rules = {};
};

// Reads `tools`, `tool_choice` and `parallel_tool_calls`. Throws ApiError.
// https://platform.openai.com/docs/guides/function-calling
AskedTools read_tools(FieldReader& fields);

// Returns the function of a tool or a call {"type": "function", "function": {"name": ...}}.
// `place`: place of the whole object. Throws ApiError.
const Json& function_of(FieldReader& fields, const std::string& place);

}  // namespace convoy::recipes
