// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chat_fields.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "convoy/core/base/suggest.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/row_formats.h"
#include "convoy/data/datasets/utf8.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string>& known_roles() {
  static const std::vector<std::string> kRoles = {"system",    "developer", "user",
                                                  "assistant", "tool",      "function"};
  return kRoles;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kShareGptRoles = {{
    {"human", "user"},
    {"user", "user"},
    {"gpt", "assistant"},
    {"assistant", "assistant"},
    {"system", "system"},
    {"tool", "tool"},
    {"observation", "tool"},
}};

// Without the members that are null, at every depth; items of lists stay.
Json without_null_members(const Json& value) {
  if (!value.is_structured()) return value;
  Json kept = value.is_array() ? Json::array() : Json::object();
  if (value.is_array())
    for (const Json& item : value) kept.push_back(without_null_members(item));
  else
    for (const auto& [key, member] : value.items())
      if (!member.is_null()) kept[key] = without_null_members(member);
  return kept;
}

bool calls_tools(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

}  // namespace

void RowFields::fail(const std::string& reason, std::string hint) const {
  throw DataError(fmt::format("row {}: {}", row_.index + 1, reason),
                  {.file = row_.file, .line = row_.line, .hint = std::move(hint)});
}

const Json* RowFields::found(std::string_view key) const {
  const auto member = value_.find(key);
  if (member == value_.end()) return nullptr;
  read_.push_back(&*member);
  return &*member;
}

std::vector<std::string> RowFields::unread() const {
  std::vector<std::string> names;
  if (!value_.is_object()) return names;
  for (const auto& [name, member] : value_.items())
    if (!member.is_null() && std::find(read_.begin(), read_.end(), &member) == read_.end())
      names.push_back(name);
  return names;
}

const Json& RowFields::member(std::string_view key) const {
  const Json* member = found(key);
  if (member == nullptr) fail(fmt::format("wanted the key `{}`, which is missing", key));
  if (member->is_null()) fail(fmt::format("`{}` is null", key));
  return *member;
}

std::string RowFields::text(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_string())
    fail(fmt::format("wanted a string under `{}`, found a JSON {}", key, value.type_name()));
  return cut(value.get<std::string>());
}

std::string RowFields::text_or_empty(std::string_view key) {
  const Json* member = found(key);
  return member == nullptr || member->is_null() ? std::string() : text(key);
}

std::string RowFields::cut(std::string text) {
  if (max_field_chars_ > 0 && cut_to_characters(text, static_cast<size_t>(max_field_chars_)))
    ++fields_cut_;
  return text;
}

// Parses a value that is a JSON string, as in a CSV file. Its nulls are its author's; those of
// other values may be Parquet's, which gives every object of a column every key.
Json RowFields::parsed(std::string_view key) const {
  const Json& value = member(key);
  if (!value.is_string()) return without_null_members(value);
  try {
    return parse_json_row(value.get<std::string>(), {});
  } catch (const DataError& error) {
    fail(fmt::format("the string under `{}` is no JSON: {}", key, error.what()));
  }
}

Json RowFields::parsed_or_null(std::string_view key) const {
  const Json* member = found(key);
  const bool absent = member == nullptr || member->is_null() || *member == "";
  return absent ? Json() : parsed(key);
}

Json RowFields::list(std::string_view key) const {
  Json list = parsed(key);
  if (!list.is_array())
    fail(fmt::format("wanted a list under `{}`, found a JSON {}", key, list.type_name()));
  return list;
}

Json RowFields::messages(std::string_view key) {
  Json checked = Json::array();
  const Json items = list(key);
  if (items.empty()) fail(fmt::format("`{}` is an empty list", key));
  for (size_t turn = 0; turn < items.size(); ++turn)
    checked.push_back(checked_message(items[turn], fmt::format("{}[{}]", key, turn)));
  return checked;
}

Json RowFields::checked_message(const Json& message, std::string_view where) {
  if (!message.is_object())
    fail(
        fmt::format("wanted {{role, content}} at {}, found a JSON {}", where, message.type_name()));
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string())
    fail(fmt::format("wanted a string `role` at {}", where));
  const auto& roles = known_roles();
  const auto name = role->get<std::string>();
  if (std::find(roles.begin(), roles.end(), name) == roles.end())
    fail(fmt::format("unknown role `{}` at {}{}; known: {}", name, where, did_you_mean(name, roles),
                     fmt::join(roles, ", ")));
  Json checked = Json::object();
  for (const auto& [key, value] : message.items())
    if (!value.is_null()) checked[key] = value;
  check_content(checked, where);
  return checked;
}

// A string, or a list of {"type": "text", "text": ...} parts. A turn with tool calls may have none.
void RowFields::check_content(Json& message, std::string_view where) {
  const auto content = message.find("content");
  if (content == message.end()) {
    if (calls_tools(message)) return;
    fail(fmt::format("`content` is missing or null at {}", where));
  }
  if (content->is_string()) {
    *content = cut(content->get<std::string>());
    return;
  }
  if (!content->is_array())
    fail(fmt::format("wanted a string or a list of text parts as `content` at {}, found a JSON {}",
                     where, content->type_name()));
  for (Json& part : *content) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) fail(fmt::format("only text parts are supported as `content` at {}", where));
    part["text"] = cut(part["text"].get<std::string>());
  }
}

Json RowFields::conversations() {
  Json messages = Json::array();
  if (std::string system = text_or_empty("system"); !system.empty())
    messages.push_back({{"role", "system"}, {"content", std::move(system)}});
  const Json items = list("conversations");
  if (items.empty()) fail("`conversations` is an empty list");
  for (size_t turn = 0; turn < items.size(); ++turn) {
    const std::string where = fmt::format("conversations[{}]", turn);
    const Json& item = items[turn];
    const bool shaped = item.is_object() && item.contains("from") && item["from"].is_string() &&
                        item.contains("value") && item["value"].is_string();
    if (!shaped) fail(fmt::format("wanted {{from, value}} strings at {}", where));
    const auto from = item["from"].get<std::string>();
    const auto role = std::find_if(kShareGptRoles.begin(), kShareGptRoles.end(),
                                   [&](const auto& known) { return known.first == from; });
    if (role == kShareGptRoles.end())
      fail(
          fmt::format("unknown speaker `{}` at {}; known: human, user, gpt, assistant, system, "
                      "tool, observation",
                      from, where));
    messages.push_back(
        {{"role", role->second}, {"content", cut(item["value"].get<std::string>())}});
  }
  return messages;
}

Json RowFields::template_variables(const Json& of_run, Columns columns) const {
  Json own = parsed_or_null("chat_template_kwargs");
  if (own.is_null()) own = Json::object();
  if (!own.is_object())
    fail(fmt::format("wanted an object under `chat_template_kwargs`, found a JSON {}",
                     own.type_name()));
  if (columns == Columns::KwargsToolsDocuments)
    for (const char* key : {"tools", "documents"}) {
      Json column = parsed_or_null(key);
      if (column.is_null()) continue;
      if (own.contains(key))
        fail(fmt::format("`{}` is a column and one of the `chat_template_kwargs`", key),
             "keep one of them");
      own[key] = std::move(column);
    }
  if (const auto problem = settings::template_kwargs_problem(own)) fail(*problem);
  Json variables = of_run.is_null() ? Json::object() : of_run;
  for (const auto& [name, value] : own.items()) variables[name] = value;
  return variables;
}

}  // namespace convoy::data
