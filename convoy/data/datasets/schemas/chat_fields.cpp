// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/chat_fields.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/utf8.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/formats/row_formats.h"
#include "convoy/data/datasets/masks/turn_weights.h"
#include "convoy/data/datasets/schemas/nested_column.h"

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

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_object(); });
}

// The known keys of turns: OpenAI's format, and thoughts.
// A `name` is not among them: many templates do not write it.
constexpr std::array<std::string_view, 8> kTurnKeys = {
    "role", "content",           "tool_calls", "tool_call_id",
    "type", "reasoning_content", "thinking",   "reasoning"};
constexpr std::array<std::string_view, 2> kTextPartKeys = {"type", "text"};
constexpr std::array<std::string_view, 2> kShareGptKeys = {"from", "value"};

constexpr const char* kLossMask = "loss_mask";

// The value without members that are null, at every depth. Null items of lists stay.
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

// Gives a call without arguments, or with null, an empty object: templates write an object.
void fill_arguments(Json& message) {
  if (!message.contains("tool_calls") || !message["tool_calls"].is_array()) return;
  for (Json& call : message["tool_calls"]) {
    if (!call.is_object()) continue;
    Json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object() || !function.contains("name")) continue;
    if (function.value("arguments", Json()).is_null()) function["arguments"] = Json::object();
  }
}

// A list of objects, which a file may hold as one JSON text or as a list of JSON texts.
Json decoded_objects(const Json& column) {
  Json list = as_list_of_structs(decoded_column(column));
  if (list.is_array())
    for (Json& item : list) item = decoded_column(item);
  return list;
}

bool calls_tools(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

}  // namespace

void RowFields::fail(const std::string& reason, std::string hint) const {
  throw DataError(fmt::format("row {}: {}", row_.index + 1, reason),
                  {.file = row_.file,
                   .line = row_.line,
                   .hint = hint.empty() ? "correct the row, or leave unreadable rows out with "
                                          "--bad-rows skip (data.bad_rows: skip)"
                                        : std::move(hint)});
}

const Json* RowFields::found(std::string_view key) const {
  const auto member = value_.find(key);
  if (member == value_.end()) return nullptr;
  read_.push_back(&*member);
  return &*member;
}

std::vector<std::string> RowFields::unread() const {
  std::vector<std::string> names = unread_within_;
  if (!value_.is_object()) return names;
  for (const auto& [name, member] : value_.items())
    if (!is_absent(member) && std::find(read_.begin(), read_.end(), &member) == read_.end())
      names.push_back(name);
  return names;
}

void RowFields::absorb(const RowFields& other) {
  fields_cut_ += other.fields_cut_;
  for (std::string& name : other.unread()) unread_within_.push_back(std::move(name));
}

const Json* RowFields::peek(std::string_view key) const {
  const auto member = value_.find(key);
  return member == value_.end() || member->is_null() ? nullptr : &*member;
}

std::string_view RowFields::name_of(std::string_view key) const {
  if (key == "chosen" && !row_.chosen_from.empty()) return row_.chosen_from;
  if (key == "rejected" && !row_.rejected_from.empty()) return row_.rejected_from;
  return key;
}

const Json& RowFields::member(std::string_view key) const {
  const Json* member = found(key);
  if (member == nullptr) fail(fmt::format("wanted the key `{}`, which is missing", name_of(key)));
  if (member->is_null()) fail(fmt::format("`{}` is null", name_of(key)));
  return *member;
}

const Json& RowFields::text_or_turns(std::string_view key) const {
  const Json& value = member(key);
  if (!value.is_string() && !value.is_number_integer() && !value.is_structured())
    fail(fmt::format("wanted a text or a list of messages under `{}`, found the {} {}",
                     name_of(key), value.type_name(), value.dump()),
         fmt::format("write it in quotes, as the model is to read it: \"{}\"", value.dump()));
  return value;
}

std::string RowFields::text(std::string_view key) {
  const Json& value = member(key);
  if (value.is_number_integer()) return cut(value.dump());
  if (!value.is_string())
    fail(
        fmt::format("wanted a string under `{}`, found a JSON {}", name_of(key), value.type_name()),
        value.is_primitive() ? "write it in quotes, as the model is to read it" : "");
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

// The value of a column. A JSON string, as in a CSV file, is parsed, and its nulls stay as written.
// In any other value nulls are dropped: Parquet adds them, because every object of a column there
// has every key.
Json RowFields::parsed(std::string_view key) const {
  const Json& value = member(key);
  if (!value.is_string()) return without_null_members(value);
  try {
    return parse_json_row(value.get<std::string>(), {});
  } catch (const DataError& error) {
    std::string text = value.get<std::string>();
    fail(fmt::format("the string under `{}` is no JSON: {}", name_of(key), error.what()),
         replace_damaged_text(text) > 0 ? kReplaceDamageHint : "");
  }
}

Json RowFields::parsed_or_null(std::string_view key) const {
  const Json* member = found(key);
  const bool absent = member == nullptr || member->is_null() || *member == "";
  return absent ? Json() : parsed(key);
}

Json RowFields::list(std::string_view key) const {
  Json list = as_list_of_structs(parsed(key));
  if (!list.is_array())
    fail(fmt::format("wanted a list under `{}`, found a JSON {}", name_of(key), list.type_name()));
  return list;
}

// Gives each turn its entry of the row's column `loss_mask`.
void RowFields::spread_loss_mask(Json& turns) const {
  const Json* const row_mask = found(kLossMask);
  if (row_mask == nullptr || row_mask->is_null()) return;
  const Json mask = list(kLossMask);
  if (mask.size() != turns.size())
    fail(fmt::format("`{}` has {} for {}", kLossMask, counted(std::ssize(mask), "entry", "entries"),
                     counted(std::ssize(turns), "turn")),
         "write one for each turn: 0, 1, or a weight");
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    if (!turns[turn].is_object() || mask[turn].is_null()) continue;
    Json& own = turns[turn][kLossMask];
    if (!own.is_null() && own != mask[turn])
      fail(
          fmt::format("`{}` of the row and of its turn {} contradict each other", kLossMask, turn));
    own = mask[turn];
  }
}

Json RowFields::messages(std::string_view key) {
  Json checked = Json::array();
  Json items = list(key);
  if (items.empty()) fail(fmt::format("`{}` is an empty list", name_of(key)));
  if (key == "messages") spread_loss_mask(items);
  for (size_t turn = 0; turn < items.size(); ++turn)
    checked.push_back(checked_message(items[turn], fmt::format("{}[{}]", name_of(key), turn)));
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
  // An empty list of calls means that there are no calls, but some templates only test whether the
  // key exists.
  for (const auto& [key, value] : message.items()) {
    Json member = key == "tool_calls" ? decoded_objects(value)
                  : key == "content"  ? as_list_of_structs(value)
                                      : value;
    if (!member.is_null() && !(key == "tool_calls" && is_absent(member)))
      checked[key] = std::move(member);
  }
  if (const auto calls = checked.find("tool_calls");
      calls != checked.end() && !is_list_of_objects(*calls))
    fail(fmt::format("wanted a list of objects as `tool_calls` at {}", where));
  fill_arguments(checked);
  check_content(checked, where);
  settle_weight(checked, where);
  note_further_keys(checked, kTurnKeys);
  return checked;
}

void RowFields::settle_weight(Json& message, std::string_view where) {
  if (const std::string problem = settle_turn_weight(message); !problem.empty())
    fail(fmt::format("{} at {}", problem, where));
}

void RowFields::note_further_keys(const Json& turn, std::span<const std::string_view> known) {
  for (const auto& [key, value] : turn.items()) {
    const bool is_known =
        is_turn_weight_key(key) || std::find(known.begin(), known.end(), key) != known.end();
    if (is_known || is_absent(value)) continue;
    std::vector<std::string>& keys = looks_like_turn_weight(key) ? weight_like_ : further_keys_;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
}

// Checks a content: a string, or a list of {"type": "text", "text": ...} parts. A turn with tool
// calls may have no content.
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
  if (content->is_array() && content->empty() && calls_tools(message)) {
    message.erase(content);
    return;
  }
  if (content->is_array() && content->empty())
    fail(fmt::format("the list of parts `content` is empty at {}", where),
         "write the text of the turn, or leave the turn out");
  if (!content->is_array())
    fail(fmt::format("wanted a string or a list of text parts as `content` at {}, found a JSON {}",
                     where, content->type_name()));
  for (Json& part : *content) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) fail(fmt::format("only text parts are supported as `content` at {}", where));
    for (const auto& [key, value] : part.items())
      if (is_turn_weight_key(key) && !value.is_null())
        fail(fmt::format("a part of the `content` at {} has `{}`, but a turn is learnt as a whole",
                         where, key));
    note_further_keys(part, kTextPartKeys);
    part["text"] = cut(part["text"].get<std::string>());
  }
}

Json RowFields::conversations(std::string_view column) {
  Json messages = Json::array();
  Json items = list(column);
  if (items.empty()) fail(fmt::format("`{}` is an empty list", name_of(column)));
  spread_loss_mask(items);
  for (size_t turn = 0; turn < items.size(); ++turn) {
    const std::string where = fmt::format("{}[{}]", name_of(column), turn);
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
    Json message = {{"role", role->second}, {"content", cut(item["value"].get<std::string>())}};
    for (const auto& [key, value] : item.items())
      if (is_turn_weight_key(key)) message[key] = value;
    settle_weight(message, where);
    note_further_keys(item, kShareGptKeys);
    messages.push_back(std::move(message));
  }
  return messages;
}

Json RowFields::history() {
  Json messages = Json::array();
  const Json* const column = peek("history");
  const Json pairs = column == nullptr ? Json() : decoded_column(*column);
  if (!pairs.is_array()) return messages;
  found("history");
  for (size_t item = 0; item < pairs.size(); ++item) {
    const Json& pair = pairs[item];
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      fail(fmt::format("wanted a question and its answer, two strings, at history[{}]", item));
    messages.push_back({{"role", "user"}, {"content", cut(pair[0].get<std::string>())}});
    messages.push_back({{"role", "assistant"}, {"content", cut(pair[1].get<std::string>())}});
  }
  return messages;
}

std::string RowFields::system_column() {
  std::string system = text_or_empty("system");
  std::string prompt = text_or_empty("system_prompt");
  if (!system.empty() && !prompt.empty() && system != prompt)
    fail("ambiguous row: `system` and `system_prompt` differ", "keep one of them");
  return system.empty() ? prompt : system;
}

void RowFields::add_system_column(Json& messages) {
  std::string system = system_column();
  if (system.empty()) return;
  for (const Json& message : messages) {
    if (message["role"] != "system" && message["role"] != "developer") continue;
    if (message.value("content", Json()) == system) return;
    fail("ambiguous row: its system turn and its column with a system prompt differ",
         "keep one of them");
  }
  messages.insert(messages.begin(), Json{{"role", "system"}, {"content", std::move(system)}});
}

Json RowFields::template_variables(const Json& of_run, Texts texts) const {
  Json own = parsed_or_null("chat_template_kwargs");
  if (own.is_null()) own = Json::object();
  if (!own.is_object())
    fail(fmt::format("wanted an object under `chat_template_kwargs`, found a JSON {}",
                     own.type_name()));
  for (const char* key : {"tools", "documents"}) {
    const Json* const column = peek(key);
    if (column == nullptr || (texts == Texts::InColumns &&
                              !is_list_of_objects(as_list_of_structs(decoded_column(*column)))))
      continue;
    Json value = decoded_objects(parsed_or_null(key));
    if (value.is_null()) continue;
    if (own.contains(key))
      fail(fmt::format("`{}` is a column and one of the `chat_template_kwargs`", key),
           "keep one of them");
    own[key] = std::move(value);
  }
  if (const auto problem = settings::template_kwargs_problem(own)) fail(*problem);
  Json variables = of_run.is_null() ? Json::object() : of_run;
  for (const auto& [name, value] : own.items()) variables[name] = value;
  return variables;
}

}  // namespace convoy::data
