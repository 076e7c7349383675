// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/sweep/sweep_parquet.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "convoy/data/datasets/formats/table_columns.h"
#include "convoy/farm/sweep/results/tidy_table.h"

namespace convoy::apps {
namespace {

using nlohmann::ordered_json;

enum class ColumnType { Integer, Number, Flag, Text };

// Types of columns that may be null in every row, so that a table of failures has the same types as
// a table of values.
const std::map<std::string_view, ColumnType>& known_types() {
  static const std::map<std::string_view, ColumnType> types = [] {
    std::map<std::string_view, ColumnType> known;
    for (const char* const name :
         {"seed", "guesses", "accepted", "non_finite", "steps", "attempts", "failure_signal"})
      known[name] = ColumnType::Integer;
    for (const char* const name :
         {"value", "standard_error", "low", "high", "accepted_share", "prior_mean", "theory",
          "asymptote", "theory_acceptance", "train_loss", "seconds", "guesses_per_second"})
      known[name] = ColumnType::Number;
    return known;
  }();
  return types;
}

ColumnType type_of(const ordered_json& rows, const std::string& name) {
  const auto known = known_types().find(name);
  if (known != known_types().end()) return known->second;
  bool integer = true, number = true, flag = true, any = false;
  for (const ordered_json& row : rows) {
    const ordered_json& value = row.at(name);
    if (value.is_null()) continue;
    any = true;
    integer = integer && value.is_number_integer();
    number = number && value.is_number();
    flag = flag && value.is_boolean();
  }
  if (!any) return ColumnType::Text;
  return integer  ? ColumnType::Integer
         : number ? ColumnType::Number
         : flag   ? ColumnType::Flag
                  : ColumnType::Text;
}

// Invalid UTF-8 becomes the replacement character.
std::string text_of(const ordered_json& value) {
  const auto replace = ordered_json::error_handler_t::replace;
  const std::string dumped = value.dump(-1, ' ', false, replace);
  return value.is_string() ? ordered_json::parse(dumped).get<std::string>() : dumped;
}

template <class T>
data::Cells<T> cells_of(const ordered_json& rows, const std::string& name) {
  data::Cells<T> cells;
  for (const ordered_json& row : rows) {
    const ordered_json& value = row.at(name);
    if (value.is_null()) {
      cells.emplace_back();
    } else if constexpr (std::is_same_v<T, std::string>) {
      cells.emplace_back(text_of(value));
    } else {
      cells.emplace_back(value.get<T>());
    }
  }
  return cells;
}

}  // namespace

std::string tidy_parquet(const sweep::SweepResults& results) {
  const ordered_json rows = sweep::tidy_json(results);
  std::vector<data::TableColumn> columns;
  for (const std::string& name : sweep::tidy_columns(results)) {
    data::TableColumn column{.name = name, .cells = {}};
    switch (type_of(rows, name)) {
      case ColumnType::Integer:
        column.cells = cells_of<int64_t>(rows, name);
        break;
      case ColumnType::Number:
        column.cells = cells_of<double>(rows, name);
        break;
      case ColumnType::Flag:
        column.cells = cells_of<bool>(rows, name);
        break;
      case ColumnType::Text:
        column.cells = cells_of<std::string>(rows, name);
        break;
    }
    columns.push_back(std::move(column));
  }
  return data::parquet_bytes(columns);
}

}  // namespace convoy::apps
