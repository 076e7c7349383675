// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/nested_column.h"

#include <algorithm>
#include <string>
#include <utility>

#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

bool is_struct_of_lists(const Json& value) {
  if (!value.is_object() || value.empty()) return false;
  const size_t count = value.front().size();
  return count > 0 && std::all_of(value.begin(), value.end(), [&](const Json& member) {
           return member.is_array() && member.size() == count;
         });
}

bool is_turn(const Json& value) {
  if (!value.is_object()) return false;
  const bool has_role = value.contains("role");
  return (has_role && (value.contains("content") || value.contains("tool_calls"))) ||
         (value.contains("from") && value.contains("value"));
}

// The list of turns in a text; null: there is none, or the column is no text.
Json turns_in_text(const Json& row, const char* key) {
  const auto column = row.find(key);
  if (column == row.end() || !column->is_string()) return nullptr;
  Json list = as_list_of_structs(decoded_column(*column));
  const bool are_turns =
      list.is_array() && !list.empty() && std::all_of(list.begin(), list.end(), is_turn);
  return are_turns ? list : Json();
}

}  // namespace

Json decoded_column(const Json& column) {
  if (!column.is_string()) return column;
  const auto& text = column.get_ref<const std::string&>();
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '[' && text[first] != '{')) return column;
  try {
    return parse_json_row(text, {});
  } catch (const DataError&) {
    return column;
  }
}

Json as_list_of_structs(Json value) {
  if (!is_struct_of_lists(value)) return value;
  Json list = Json::array();
  for (size_t item = 0; item < value.front().size(); ++item) {
    Json object = Json::object();
    for (auto& [key, members] : value.items()) object[key] = std::move(members[item]);
    list.push_back(std::move(object));
  }
  return list;
}

std::optional<Json> with_decoded_turns(const Json& row) {
  if (!row.is_object()) return std::nullopt;
  const auto has = [&](const char* key) {
    const auto column = row.find(key);
    return column != row.end() && !column->is_null();
  };
  const bool are_sides = has("chosen") && has("rejected");
  Json prompt = turns_in_text(row, "prompt");
  std::optional<Json> decoded;
  const auto put = [&](const char* key, Json turns) {
    if (!decoded) decoded = row;
    (*decoded)[key] = std::move(turns);
  };
  if (are_sides) {
    Json chosen = turns_in_text(row, "chosen"), rejected = turns_in_text(row, "rejected");
    if (chosen.is_null() || rejected.is_null()) return std::nullopt;
    put("chosen", std::move(chosen));
    put("rejected", std::move(rejected));
  } else if (has("completion")) {
    if (prompt.is_null()) return std::nullopt;  // before an answer in JSON is parsed for nothing
    Json completion = turns_in_text(row, "completion");
    if (completion.is_null()) return std::nullopt;
    put("completion", std::move(completion));
  }
  if (!prompt.is_null()) put("prompt", std::move(prompt));
  return decoded;
}

bool is_absent(const Json& column) {
  return column.is_null() || column == "" || (column.is_structured() && column.empty());
}

}  // namespace convoy::data
