// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/field_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_text.h"

namespace convoy::serving {
namespace {

[[noreturn]] void refuse_field(const std::string& field, const std::string& problem) {
  throw ApiError(400, fmt::format("`{}` {}", field, problem), field, "unsupported_parameter");
}

std::string served_values(const std::vector<Json>& neutral) {
  std::string values = dumped(neutral.front());
  for (size_t at = 1; at < neutral.size(); ++at) values += " or " + dumped(neutral[at]);
  return values;
}

}  // namespace

Json parse_object(std::string_view body) {
  Json object;
  try {
    object = io::parse_json(body, "the body");
  } catch (const DataError& error) {
    throw ApiError(400, fmt::format("the body of the request: {}", error.what()));
  }
  if (!object.is_object()) throw ApiError(400, "the body must be a JSON object");
  return object;
}

const Json* FieldReader::find(const std::string& name) {
  known_.insert(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

int64_t FieldReader::integer(const std::string& name, int64_t absent, int64_t least, int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return absent;
  if (!value->is_number_integer() || value->get<int64_t>() < least || value->get<int64_t>() > most)
    refuse(prefix_ + name, fmt::format("an integer from {} to {}", least, most), *value);
  return value->get<int64_t>();
}

double FieldReader::number(const std::string& name, double absent, double least, double most) {
  const Json* value = find(name);
  if (value == nullptr) return absent;
  if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most))
    refuse(prefix_ + name, fmt::format("a number from {} to {}", least, most), *value);
  return value->get<double>();
}

bool FieldReader::flag(const std::string& name, bool absent) {
  const Json* value = find(name);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) refuse(prefix_ + name, "true or false", *value);
  return value->get<bool>();
}

std::string FieldReader::text(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string()) refuse(prefix_ + name, "a string", *value);
  return value->get<std::string>();
}

const Json* FieldReader::object(const std::string& name) {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) refuse(prefix_ + name, "an object", *value);
  return value;
}

void FieldReader::require_neutral(const std::string& name, const std::vector<Json>& neutral) {
  const Json* value = find(name);
  if (value != nullptr && std::find(neutral.begin(), neutral.end(), *value) == neutral.end())
    refuse_field(prefix_ + name, fmt::format("is served as {} alone, found {}; leave it out",
                                             served_values(neutral), io::shown(*value)));
}

// Ignores unread fields that are null: the openai package writes null for fields that its objects
// do not have.
void FieldReader::require_nothing_else() const {
  for (const auto& [name, value] : object_.items())
    if (!known_.contains(name) && !value.is_null())
      refuse_field(prefix_ + name, "is not served by convoy serve; leave it out");
}

void FieldReader::refuse(const std::string& field, const std::string& wanted, const Json& found) {
  throw ApiError(400, fmt::format("`{}` must be {}, found {}", field, wanted, io::shown(found)),
                 field, "invalid_value");
}

}  // namespace convoy::serving
