// SPDX-License-Identifier: Apache-2.0
//
// The type of a column of JSON values, widened until all values fit.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace convoy::data {

struct ColumnType {
  // Text: the column has values of several kinds. Strings are written unchanged, all other values
  // as JSON.
  enum class Kind { Null, Bool, Int, Double, String, List, Struct, Text };

  Kind kind = Kind::Null;
  bool has_large_int = false;  // true: an integer that a double cannot hold exactly
  // The fields of a Struct, in order of appearance.
  std::vector<std::pair<std::string, ColumnType>> fields = {};
  std::vector<ColumnType> items = {};  // item type of a List

  // Widens the type to hold `value`; null fits every type. Whole and other numbers together become
  // Double; a number beyond 64 bits, incompatible kinds, more than 256 fields and deep nesting
  // become Text.
  void add(const nlohmann::ordered_json& value, int depth = 0);
  // Call it after the last value: a type without any value becomes String, a Struct without fields
  // Text.
  void settle();

 private:
  void become(Kind wanted);
  void become_text();
  void add_fields(const nlohmann::ordered_json& object, int depth);
};

// The content of a cell of kind Text.
std::string cell_text(const nlohmann::ordered_json& value);

}  // namespace convoy::data
