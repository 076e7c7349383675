// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/template_kwargs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "convoy/core/base/error.h"

namespace convoy::settings {
namespace {

// The parameters of apply_chat_template in transformers 5 that are not passed to the template, the
// variables that a row provides itself, and the name of Convoy's own marks.
constexpr std::array<std::string_view, 15> kReserved = {"messages",
                                                        "conversation",
                                                        "chat_template",
                                                        "add_generation_prompt",
                                                        "continue_final_message",
                                                        "tokenize",
                                                        "sanitize_control_tokens",
                                                        "padding",
                                                        "truncation",
                                                        "max_length",
                                                        "return_tensors",
                                                        "return_dict",
                                                        "return_assistant_tokens_mask",
                                                        "tokenizer_kwargs",
                                                        "_generation_marks"};

// jinja2 also allows letters beyond ASCII in variables.
bool is_variable(const std::string& name) {
  const auto may_stand = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), may_stand);
}

bool are_objects(const nlohmann::ordered_json& items) {
  return std::all_of(items.begin(), items.end(), [](const auto& item) { return item.is_object(); });
}

}  // namespace

std::optional<std::string> template_kwargs_problem(const nlohmann::ordered_json& kwargs) {
  for (const auto& [name, value] : kwargs.items())
    if (!is_variable(name))
      return fmt::format("no template can read a variable called `{}`{}", name,
                         name.find(':') == std::string::npos
                             ? ""
                             : "; in {name: value} a space follows the colon");
  for (const auto& [name, value] : kwargs.items())
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end())
      return fmt::format("`{}` is no variable that rows or users set: the command decides it",
                         name);
  const auto tools = kwargs.find("tools");
  if (tools != kwargs.end() && !tools->is_null() && !tools->is_array())
    return fmt::format("wanted a list as `tools`, found a JSON {}", tools->type_name());
  if (tools != kwargs.end() && !are_objects(*tools))
    return "wanted a list of objects as `tools`: the schemas of functions";
  const auto documents = kwargs.find("documents");
  const bool given = documents != kwargs.end() && !documents->is_null();
  if (given && !(documents->is_array() && are_objects(*documents)))
    return "wanted a list of objects such as {title, text} as `documents`";
  return std::nullopt;
}

nlohmann::ordered_json template_kwargs(const config::JsonMap& given, const std::string& key) {
  nlohmann::ordered_json kwargs = nlohmann::ordered_json::parse(given.json);
  if (const auto problem = template_kwargs_problem(kwargs))
    throw ConfigError(
        fmt::format("{}: {}", key, *problem),
        {.key = key,
         .hint = "give a map of the template's variables, such as {enable_thinking: false}"});
  return kwargs;
}

}  // namespace convoy::settings
