// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/column_type.h"

#include <algorithm>

namespace convoy::data {
namespace {

constexpr size_t kMostFields = 256;
constexpr int kDeepest = 32;
constexpr int64_t kLargestExactInt = int64_t{1} << 53;  // integers up to this are exact in a double

}  // namespace

void ColumnType::become_text() {
  kind = Kind::Text;
  fields.clear();
  items.clear();
}

void ColumnType::become(Kind wanted) {
  if (kind == wanted || kind == Kind::Text) return;
  const bool is_number = (kind == Kind::Int && wanted == Kind::Double) ||
                         (kind == Kind::Double && wanted == Kind::Int);
  if (kind == Kind::Null) {
    kind = wanted;
  } else if (is_number) {
    kind = Kind::Double;
  } else {
    become_text();
  }
}

void ColumnType::add(const nlohmann::ordered_json& value, int depth) {
  if (kind == Kind::Text || value.is_null()) return;
  if (value.is_boolean()) {
    become(Kind::Bool);
  } else if (value.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})
      return become_text();
    const auto number = value.get<int64_t>();
    has_large_int |= number > kLargestExactInt || number < -kLargestExactInt;
    become(Kind::Int);
  } else if (value.is_number()) {
    become(Kind::Double);
  } else if (value.is_string()) {
    become(Kind::String);
  } else if (value.is_array()) {
    become(depth < kDeepest ? Kind::List : Kind::Text);
    if (kind != Kind::List) return;
    if (items.empty()) items.resize(1);
    for (const auto& item : value) items[0].add(item, depth + 1);
  } else {
    become(depth < kDeepest ? Kind::Struct : Kind::Text);
    if (kind == Kind::Struct) add_fields(value, depth);
  }
  if (kind == Kind::Double && has_large_int) become_text();
}

void ColumnType::add_fields(const nlohmann::ordered_json& object, int depth) {
  size_t at = 0;  // index of the next field; most rows have the fields in the same order
  for (const auto& [name, value] : object.items()) {
    if (at >= fields.size() || fields[at].first != name) {
      const auto found =
          std::find_if(fields.begin(), fields.end(),
                       [&name = name](const auto& field) { return field.first == name; });
      at = static_cast<size_t>(found - fields.begin());
      if (found == fields.end()) fields.emplace_back(name, ColumnType{});
    }
    if (depth > 0 && fields.size() > kMostFields) return become_text();
    fields[at++].second.add(value, depth + 1);
  }
}

void ColumnType::settle() {
  if (kind == Kind::Null) kind = Kind::String;
  if (kind == Kind::Struct && fields.empty()) kind = Kind::Text;
  for (auto& [name, type] : fields) type.settle();
  for (ColumnType& item : items) item.settle();
}

std::string cell_text(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace convoy::data
