// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cell_fields.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/json_depth.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/value.h"

namespace convoy::experiments {
namespace {

using Json = nlohmann::json;

// The node has no position in a file, so errors name only the key.
config::Node node_of(const Json& value) {
  config::Node node;
  if (value.is_array()) {
    node.kind = config::NodeKind::List;
    for (const Json& item : value) node.items.push_back(node_of(item));
  } else if (value.is_object()) {
    node.kind = config::NodeKind::Map;  // no field accepts a map
  } else if (!value.is_null()) {
    node.kind = config::NodeKind::Scalar;
    node.quoted = value.is_string();
    node.text = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return node;
}

// True when `given` has quotes around a number or a boolean. `read`: the typed value that the field
// parsed from `given`.
bool is_quoted(const Json& given, const Json& read) {
  if (!read.is_array()) return given.is_string() && !read.is_string();
  for (size_t at = 0; at < read.size(); ++at)
    if (is_quoted(given.is_array() ? given.at(at) : given, read[at])) return true;
  return false;
}

// Flags arrive as texts, so a field accepts a number in quotes. A cell's values are typed, so a
// number in quotes is refused here.
void read_value(const config::Field& field, const Json& value, const std::string& key) {
  config::set_value(field, node_of(value), key);
  const Json read = config::value_json(field);
  if (is_quoted(value, read))
    throw ConfigError(fmt::format("{}: wanted {} without quotes, found `{}`", key,
                                  read.dump().substr(0, 60), value.dump().substr(0, 60)),
                      {.key = key, .hint = "write numbers, true and false without quotes"});
}

void read_rows(const NumberRows& field, const Json& value) {
  try {
    if (value.is_array() && !value.empty() && !value.front().is_array())
      *field.rows = {value.get<std::vector<double>>()};
    else
      value.get_to(*field.rows);
  } catch (const Json::exception&) {
    field.rows->clear();
  }
  if (field.rows->empty())
    throw ConfigError(fmt::format("{}: wanted a list of numbers, or of such lists, found `{}`",
                                  field.name, value.dump().substr(0, 60)),
                      {.key = field.name, .hint = "such as [[1, 0], [0, 1]]"});
}

void read_key(const std::string& key, const Json& value, const char* workload,
              const CellFields& cell) {
  std::vector<std::string> known;
  for (const config::Field& field : cell.list.fields) {
    if (field.name == key) return read_value(field, value, key);
    known.push_back(field.name);
  }
  for (const NumberRows& field : cell.data) {
    if (field.name == key) return read_rows(field, value);
    known.emplace_back(field.name);
  }
  throw ConfigError(fmt::format("{} has no parameter `{}`", workload, key),
                    {.key = key, .hint = fmt::format("there are {}", fmt::join(known, ", "))});
}

}  // namespace

void read_cell(const std::string& text, const char* workload, const CellFields& cell) {
  const Json object = nested_deeper(text) ? Json() : Json::parse(text, nullptr, false);
  if (!object.is_object())
    throw ConfigError(
        fmt::format("wanted parameters as a JSON object, found `{}`", text.substr(0, 80)),
        {.hint = "write {\"NAME\": VALUE, ...}"});
  for (const auto& [key, value] : object.items()) read_key(key, value, workload, cell);
}

void check_bounds(const CellFields& cell) {
  for (const config::Field& field : cell.list.fields) config::check_bounds(field, {}, field.name);
}

std::string cell_text(const CellFields& cell, const CellFields& defaults) {
  Json changed = Json::object();
  for (size_t at = 0; at < cell.list.fields.size(); ++at) {
    const config::Field& field = cell.list.fields[at];
    Json value = config::value_json(field);
    if (value != config::value_json(defaults.list.fields[at]))
      changed[field.name] = std::move(value);
  }
  for (size_t at = 0; at < cell.data.size(); ++at)
    if (*cell.data[at].rows != *defaults.data[at].rows)
      changed[cell.data[at].name] = *cell.data[at].rows;
  return changed.dump();
}

}  // namespace convoy::experiments
