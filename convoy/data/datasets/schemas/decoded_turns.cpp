// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/decoded_turns.h"

#include <algorithm>
#include <utility>

#include "convoy/data/datasets/schemas/nested_column.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

bool is_turn(const Json& value) {
  if (!value.is_object()) return false;
  const bool has_role = value.contains("role");
  return (has_role && (value.contains("content") || value.contains("tool_calls"))) ||
         (value.contains("from") && value.contains("value"));
}

// The list of turns that the text of a column holds; null when the column holds no such list or is
// no text.
Json turns_in_text(const Json& row, const char* key) {
  const auto column = row.find(key);
  if (column == row.end() || !column->is_string()) return nullptr;
  Json list = as_list_of_structs(decoded_column(*column));
  const bool are_turns =
      list.is_array() && !list.empty() && std::all_of(list.begin(), list.end(), is_turn);
  return are_turns ? list : Json();
}

}  // namespace

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
    if (prompt.is_null()) return std::nullopt;  // checked first, to avoid parsing an answer in vain
    Json completion = turns_in_text(row, "completion");
    if (completion.is_null()) return std::nullopt;
    put("completion", std::move(completion));
  }
  if (!prompt.is_null()) put("prompt", std::move(prompt));
  return decoded;
}

}  // namespace convoy::data
