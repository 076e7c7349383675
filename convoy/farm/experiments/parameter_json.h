// SPDX-License-Identifier: Apache-2.0
//
// Parameters of a workload as one JSON object, over one list of keys: each_field(parameters, visit)
// calls visit(key, member) for every member. Members: int64_t, double, bool, enumerations (with a
// function words(Enum) that names the enumerators in order), optional doubles, lists of numbers and
// lists of such lists.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_depth.h"

namespace convoy::experiments {

// `Type` is Parameters, const or not: each_field() of a workload takes its own parameters alone.
template <class Type, class Parameters>
concept FieldsOf = std::same_as<std::remove_const_t<Type>, Parameters>;

// The words of one enumerator each, in the order of the enumerators.
struct EnumWords {
  std::vector<const char*> of;
};

class ParameterReader {
 public:
  explicit ParameterReader(const nlohmann::json& object) : object_(object) {}

  template <class Value>
  void operator()(const char* key, Value& value) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    ++read_;
    key_ = key;
    read(*found, value);
  }

  size_t read_count() const { return read_; }

 private:
  using Json = nlohmann::json;

  void want(bool right, const std::string& what, const Json& found) const {
    if (right) return;
    throw ConfigError(
        fmt::format("{}: wanted {}, found `{}`", key_, what, found.dump().substr(0, 60)),
        {.key = key_});
  }
  void read(const Json& from, int64_t& to) {
    // 1e4 is a fine way to write a count.
    const double number = from.is_number() ? from.get<double>() : 0.5;
    want(number == std::floor(number) && std::abs(number) < 0x1p53, "a whole number", from);
    to = from.is_number_integer() ? from.get<int64_t>() : static_cast<int64_t>(number);
  }
  void read(const Json& from, double& to) {
    want(from.is_number(), "a number", from);
    to = from.get<double>();
  }
  void read(const Json& from, bool& to) {
    want(from.is_boolean(), "true or false", from);
    to = from.get<bool>();
  }
  void read(const Json& from, std::optional<double>& to) { read(from, to.emplace()); }
  void read(const Json& from, std::vector<double>& to) {
    want(from.is_array(), "a list of numbers", from);
    to.clear();
    for (const Json& entry : from) read(entry, to.emplace_back());
  }
  void read(const Json& from, std::vector<std::vector<double>>& to) {
    want(from.is_array() && !from.empty(), "a list of numbers, or of such lists", from);
    to.clear();
    const Json rows = from.front().is_array() ? from : Json::array({from});
    for (const Json& row : rows) {
      want(row.is_array(), "a list of numbers, or of such lists", from);
      read(row, to.emplace_back());
    }
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(const Json& from, Enum& to) {
    const auto& known = words(to).of;
    const std::string word = from.is_string() ? from.get<std::string>() : from.dump();
    const auto found = std::find(known.begin(), known.end(), word);
    want(found != known.end(), fmt::format("one of {}", fmt::join(known, ", ")), from);
    to = static_cast<Enum>(found - known.begin());
  }

  const Json& object_;
  const char* key_ = "";
  size_t read_ = 0;
};

class ParameterWriter {
 public:
  template <class Value>
  void operator()(const char* key, const Value& value) {
    object_[key] = json_of(value);
  }
  const nlohmann::json& object() const { return object_; }

 private:
  template <class Value>
  static nlohmann::json json_of(const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      return words(value).of[static_cast<size_t>(value)];
    else
      return value;
  }
  static nlohmann::json json_of(const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  }

  nlohmann::json object_ = nlohmann::json::object();
};

// Sets the members that `json` has keys for. Throws ConfigError: no object, an unknown key, a wrong
// type.
template <class Parameters>
void read_parameters(const std::string& json, const char* workload, Parameters& parameters) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (!object.is_object() || nested_deeper(json))
    throw ConfigError(
        fmt::format("wanted parameters as a JSON object, found `{}`", json.substr(0, 80)),
        {.hint = "write {\"NAME\": VALUE, ...}"});
  ParameterReader reader(object);
  each_field(parameters, reader);
  if (reader.read_count() == object.size()) return;
  ParameterWriter known;
  each_field(parameters, known);
  for (const auto& [key, value] : object.items())
    if (!known.object().contains(key)) {
      std::vector<std::string> names;
      for (const auto& [name, unused] : known.object().items()) names.push_back(name);
      throw ConfigError(fmt::format("{} has no parameter `{}`", workload, key),
                        {.key = key, .hint = fmt::format("there are {}", fmt::join(names, ", "))});
    }
}

// Every key whose value differs from the default, sorted.
template <class Parameters>
std::string changed_parameters(const Parameters& parameters) {
  ParameterWriter mine, defaults;
  each_field(parameters, mine);
  const Parameters plain;
  each_field(plain, defaults);
  nlohmann::json changed = nlohmann::json::object();
  for (const auto& [key, value] : mine.object().items())
    if (value != defaults.object()[key]) changed[key] = value;
  return changed.dump();
}

}  // namespace convoy::experiments
