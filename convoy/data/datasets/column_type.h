// SPDX-License-Identifier: Apache-2.0
//
// The type of a column of JSON values, widened until all of them fit.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace convoy::data {

struct ColumnType {
  // Text: values of several kinds; strings stand there as they are, all others as JSON.
  enum class Kind { Null, Bool, Int, Double, String, List, Struct, Text };

  Kind kind = Kind::Null;
  bool has_large_int = false;                                   // one that a double does not hold
  std::vector<std::pair<std::string, ColumnType>> fields = {};  // of Struct, as first seen
  std::vector<ColumnType> items = {};  // of List: the one type of its items

  // Widens the type to hold `value`; null fits every type. Whole numbers and others together are
  // Double, a number beyond 64 bits, kinds that do not go together, more than 256 fields and deep
  // nesting are Text.
  void add(const nlohmann::ordered_json& value, int depth = 0);
  // The end: what never had a value is String, a Struct without fields is Text.
  void settle();

 private:
  void become(Kind wanted);
  void become_text();
  void add_fields(const nlohmann::ordered_json& object, int depth);
};

// What stands in a cell of kind Text.
std::string cell_text(const nlohmann::ordered_json& value);

}  // namespace convoy::data
