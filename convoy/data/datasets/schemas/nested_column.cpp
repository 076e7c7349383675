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

bool is_absent(const Json& column) {
  return column.is_null() || column == "" || (column.is_structured() && column.empty());
}

}  // namespace convoy::data
