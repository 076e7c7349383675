// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/system_prompt.h"

#include <array>
#include <utility>

#include "convoy/core/base/suggest.h"
#include "convoy/data/datasets/chain/row_shape.h"
#include "convoy/data/datasets/schemas/chat_fields.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, SystemMode>, 5> kModes = {
    {{"missing", SystemMode::Missing},
     {"replace", SystemMode::Replace},
     {"prepend", SystemMode::Prepend},
     {"append", SystemMode::Append},
     {"remove", SystemMode::Remove}}};

// The new system prompt of a row; empty: the row gets none.
std::string edited(const std::string& old, std::string_view prompt, SystemMode mode) {
  switch (mode) {
    case SystemMode::Missing:
      return old.empty() ? std::string(prompt) : old;
    case SystemMode::Replace:
      return std::string(prompt);
    case SystemMode::Prepend:
      return old.empty() ? std::string(prompt) : fmt::format("{}\n\n{}", prompt, old);
    case SystemMode::Append:
      return old.empty() ? std::string(prompt) : fmt::format("{}\n\n{}", old, prompt);
    case SystemMode::Remove:
      break;
  }
  return {};
}

struct TurnNames {
  const char* role;
  const char* content;
};

// Edits the first turn if it is a system turn, or inserts one before it.
void edit_turns(Json& turns, const TurnNames& names, std::string_view prompt, SystemMode mode) {
  const bool has_one = !turns.empty() && (turns[0].value(names.role, "") == "system" ||
                                          turns[0].value(names.role, "") == "developer");
  std::string old;
  if (has_one)
    old = turns[0][names.content].is_string() ? turns[0][names.content].get<std::string>()
                                              : content_text(turns[0]);
  const std::string text = edited(old, prompt, mode);
  if (has_one && text.empty()) {
    turns.erase(0);
  } else if (has_one && text != old) {
    turns[0][names.content] = text;
  } else if (!has_one && !text.empty()) {
    turns.insert(turns.begin(), Json{{names.role, "system"}, {names.content, text}});
  }
}

// The name of the row's column for the system prompt; of two columns the one with a text. Empty
// when there is none.
std::string system_column(const Json& row) {
  std::string found;
  for (const char* column : {"system_prompt", "system"}) {
    if (!row.contains(column) || !row[column].is_string()) continue;
    if (found.empty() || row[column] != "") found = column;
  }
  return found;
}

void edit_column(Json& row, std::string_view prompt, SystemMode mode) {
  const std::string column = system_column(row);
  const std::string text =
      edited(column.empty() ? "" : row[column].get<std::string>(), prompt, mode);
  if (!column.empty() || row.contains("system")) {
    row[column.empty() ? "system" : column] = text;
  } else if (!text.empty()) {
    Json first = {{"system", text}};
    for (const auto& [key, value] : row.items()) first[key] = value;
    row = std::move(first);
  }
}

// The turns under `key`. The list may be a JSON string, as in CSV.
Json turns_of(const Row& row, const char* key) {
  RowFields fields(row, row.value, 0);
  return fields.list(key);
}

}  // namespace

SystemMode system_mode_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, mode] : kModes) {
    if (known == name) return mode;
    names.emplace_back(known);
  }
  throw ConfigError(fmt::format("`{}` is no mode{}; known: {}", name, did_you_mean(name, names),
                                fmt::join(names, ", ")),
                    {.key = "--mode"});
}

Json with_system_prompt(const Row& row, Schema schema, std::string_view prompt, SystemMode mode) {
  Json value = row.value;
  const bool in_columns = schema == Schema::Alpaca || schema == Schema::Triple ||
                          (schema == Schema::Loose && value.is_object());
  const bool in_turns = schema == Schema::Messages || schema == Schema::ShareGpt ||
                        (schema == Schema::PromptCompletion && value["prompt"].is_array());
  if (in_columns || (in_turns && !system_column(value).empty())) {
    edit_column(value, prompt, mode);
  } else if (schema == Schema::Messages) {
    Json turns = turns_of(row, "messages");
    edit_turns(turns, {"role", "content"}, prompt, mode);
    value["messages"] = std::move(turns);
  } else if (schema == Schema::ShareGpt) {
    Json turns = turns_of(row, "conversations");
    edit_turns(turns, {"from", "value"}, prompt, mode);
    value["conversations"] = std::move(turns);
  } else if (in_turns) {
    edit_turns(value["prompt"], {"role", "content"}, prompt, mode);
  } else {
    throw DataError(fmt::format("row {}: a row of the schema {} has no place for a system prompt",
                                row.index + 1, schema_name(schema)),
                    {.file = row.file,
                     .line = row.line,
                     .hint = "convert it first: convoy data convert --to messages"});
  }
  return value;
}

}  // namespace convoy::data
