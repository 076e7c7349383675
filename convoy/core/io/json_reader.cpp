// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/json_reader.h"

#include <cmath>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::io {

JsonReader::JsonReader(Json value, std::string place)
    : document_(std::make_shared<const Json>(std::move(value))),
      value_(document_.get()),
      place_(std::move(place)) {
  if (!value_->is_object())
    throw DataError(fmt::format("wanted a JSON object, found {}", shown(*value_)),
                    {.file = place_, .hint = "write one object: { ... }"});
}

JsonReader::JsonReader(std::shared_ptr<const Json> document, const Json* value, std::string place,
                       std::string prefix)
    : document_(std::move(document)),
      value_(value),
      place_(std::move(place)),
      prefix_(std::move(prefix)) {}

void JsonReader::fail(const std::string& key, const std::string& message) const {
  throw DataError(fmt::format("{}{}: {}", prefix_, key, message),
                  {.file = place_,
                   .key = prefix_ + key,
                   .hint = "correct the key in this file, or get the file again"});
}

void JsonReader::fail_unsupported(const std::string& key, const std::string& message,
                                  const std::string& instead) const {
  throw DataError(fmt::format("{}{}: {}", prefix_, key, message),
                  {.file = place_,
                   .key = prefix_ + key,
                   .hint = instead + "; leave this file as it is: it says what the weights are"});
}

const Json* JsonReader::find(const std::string& key) const {
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

const Json* JsonReader::present(const std::string& key) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const Json& JsonReader::required(const std::string& key) const {
  const Json* value = present(key);
  if (value == nullptr) fail(key, find(key) == nullptr ? "is missing" : "is null");
  return *value;
}

bool JsonReader::has(const std::string& key) const { return present(key) != nullptr; }

std::vector<std::string> JsonReader::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : value_->items()) names.push_back(name);
  return names;
}

std::optional<int64_t> JsonReader::optional_int(const std::string& key, int64_t least,
                                                int64_t most) const {
  const Json* value = present(key);
  if (value == nullptr) return std::nullopt;
  // A number beyond int64 is unsigned or floating in the parsed document.
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t{INT64_MAX});
  if (!fits || value->get<int64_t>() < least || value->get<int64_t>() > most)
    fail(key,
         fmt::format("wanted a whole number from {} to {}, found {}", least, most, shown(*value)));
  return value->get<int64_t>();
}

int64_t JsonReader::require_int(const std::string& key, int64_t least, int64_t most) const {
  required(key);
  return *optional_int(key, least, most);
}

int64_t JsonReader::int_or(const std::string& key, int64_t fallback, int64_t least,
                           int64_t most) const {
  return optional_int(key, least, most).value_or(fallback);
}

std::optional<double> JsonReader::optional_double(const std::string& key, double least,
                                                  double most) const {
  const Json* value = present(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number() && std::isfinite(value->get<double>()) &&
                    value->get<double>() >= least && value->get<double>() <= most;
  if (!fits)
    fail(key, fmt::format("wanted a number from {} to {}, found {}", least, most, shown(*value)));
  return value->get<double>();
}

double JsonReader::require_double(const std::string& key, double least, double most) const {
  required(key);
  return *optional_double(key, least, most);
}

double JsonReader::double_or(const std::string& key, double fallback, double least,
                             double most) const {
  return optional_double(key, least, most).value_or(fallback);
}

std::optional<std::string> JsonReader::optional_string(const std::string& key) const {
  const Json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, fmt::format("wanted a string, found {}", shown(*value)));
  return value->get<std::string>();
}

std::string JsonReader::require_string(const std::string& key) const {
  required(key);
  return *optional_string(key);
}

std::string JsonReader::string_or(const std::string& key, const std::string& fallback) const {
  return optional_string(key).value_or(fallback);
}

std::optional<bool> JsonReader::optional_bool(const std::string& key) const {
  const Json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(key, fmt::format("wanted true or false, found {}", shown(*value)));
  return value->get<bool>();
}

bool JsonReader::bool_or(const std::string& key, bool fallback) const {
  return optional_bool(key).value_or(fallback);
}

std::vector<std::string> JsonReader::strings_or_empty(const std::string& key) const {
  const Json* value = present(key);
  if (value == nullptr) return {};
  std::vector<std::string> strings;
  if (!value->is_array())
    fail(key, fmt::format("wanted a list of strings, found {}", shown(*value)));
  for (const Json& item : *value) {
    if (!item.is_string())
      fail(key, fmt::format("wanted strings in the list, found {}", shown(item)));
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::vector<int64_t> JsonReader::ints_or_empty(const std::string& key, int64_t least,
                                               int64_t most) const {
  const Json* value = present(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {*optional_int(key, least, most)};
  std::vector<int64_t> numbers;
  for (const Json& item : *value) {
    const bool fits = item.is_number_integer() &&
                      (!item.is_number_unsigned() || item.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (!fits || item.get<int64_t>() < least || item.get<int64_t>() > most)
      fail(key, fmt::format("wanted whole numbers from {} to {} in the list, found {}", least, most,
                            shown(item)));
    numbers.push_back(item.get<int64_t>());
  }
  return numbers;
}

std::optional<JsonReader> JsonReader::optional_object(const std::string& key) const {
  const Json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail(key, fmt::format("wanted an object, found {}", shown(*value)));
  return JsonReader(document_, value, place_, prefix_ + key + ".");
}

JsonReader JsonReader::require_object(const std::string& key) const {
  required(key);
  return *optional_object(key);
}

}  // namespace convoy::io
