// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/json_reason.h"
#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

using nlohmann::json;

struct Place {
  const std::filesystem::path& file;
  std::string path;  // path of the keyword, such as "properties/age/type"
};

[[noreturn]] void refuse(const Place& place, const std::string& message, std::string hint = {}) {
  throw ConfigError(message, {.file = place.file.string(),
                              .key = place.path,
                              .hint = hint.empty() ? "correct the schema there" : std::move(hint)});
}

void check_schema(const json& schema, const Place& place);

Place inside(const Place& place, const std::string& name) {
  return {place.file, place.path.empty() ? name : place.path + "/" + name};
}

constexpr std::array<const char*, 7> kTypes = {"object",  "array",   "string", "number",
                                               "integer", "boolean", "null"};

void check_types(const json& value, const Place& place) {
  const auto is_type = [](const json& name) {
    return name.is_string() &&
           std::find(kTypes.begin(), kTypes.end(), name.get<std::string>()) != kTypes.end();
  };
  const bool fits = value.is_array()
                        ? !value.empty() && std::all_of(value.begin(), value.end(), is_type)
                        : is_type(value);
  if (!fits)
    refuse(place, fmt::format("wanted object, array, string, number, integer, boolean, null or a "
                              "list of these, found {}",
                              value.dump()));
}

void check_list(const json& value, const Place& place) {
  if (!value.is_array()) refuse(place, fmt::format("wanted a list, found {}", value.dump()));
}

void check_names(const json& value, const Place& place) {
  check_list(value, place);
  for (const json& name : value)
    if (!name.is_string()) refuse(place, fmt::format("wanted names, found {}", name.dump()));
}

void check_number(const json& value, const Place& place) {
  if (!value.is_number()) refuse(place, fmt::format("wanted a number, found {}", value.dump()));
}

void check_count(const json& value, const Place& place) {
  if (!value.is_number_integer() || value < 0)
    refuse(place, fmt::format("wanted a whole number of 0 or more, found {}", value.dump()));
}

void check_properties(const json& value, const Place& place) {
  if (!value.is_object()) refuse(place, fmt::format("wanted an object, found {}", value.dump()));
  for (const auto& [name, schema] : value.items()) check_schema(schema, inside(place, name));
}

void check_schemas(const json& value, const Place& place) {
  check_list(value, place);
  for (size_t index = 0; index < value.size(); ++index)
    check_schema(value[index], inside(place, std::to_string(index)));
}

void check_nothing(const json&, const Place&) {}

int64_t characters(const std::string& text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).length) ++count;
  return count;
}

bool is_valid(const json& schema, const json& value);

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

bool has_any_type(const json& types, const json& value, const json&) {
  if (types.is_string()) return has_type(value, types.get<std::string>());
  return std::any_of(types.begin(), types.end(),
                     [&](const json& type) { return has_type(value, type.get<std::string>()); });
}

bool is_one_of(const json& values, const json& value, const json&) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_same(const json& wanted, const json& value, const json&) { return wanted == value; }

bool properties_fit(const json& properties, const json& value, const json&) {
  if (!value.is_object()) return true;
  return std::all_of(properties.items().begin(), properties.items().end(),
                     [&](const auto& property) {
                       const auto found = value.find(property.key());
                       return found == value.end() || is_valid(property.value(), *found);
                     });
}

bool has_required(const json& names, const json& value, const json&) {
  if (!value.is_object()) return true;
  return std::all_of(names.begin(), names.end(), [&](const json& name) {
    return value.contains(name.get_ref<const std::string&>());
  });
}

bool additional_fit(const json& schema, const json& value, const json& whole) {
  if (!value.is_object()) return true;
  const auto properties = whole.find("properties");
  return std::all_of(value.items().begin(), value.items().end(), [&](const auto& member) {
    const bool is_named = properties != whole.end() && properties->contains(member.key());
    return is_named || is_valid(schema, member.value());
  });
}

bool items_fit(const json& schema, const json& value, const json&) {
  return !value.is_array() || std::all_of(value.begin(), value.end(),
                                          [&](const json& item) { return is_valid(schema, item); });
}

int64_t size_of(const json& value) { return static_cast<int64_t>(value.size()); }

bool any_fits(const json& schemas, const json& value, const json&) {
  return std::any_of(schemas.begin(), schemas.end(),
                     [&](const json& schema) { return is_valid(schema, value); });
}

bool one_fits(const json& schemas, const json& value, const json&) {
  return std::count_if(schemas.begin(), schemas.end(),
                       [&](const json& schema) { return is_valid(schema, value); }) == 1;
}

bool all_fit(const json& schemas, const json& value, const json&) {
  return std::all_of(schemas.begin(), schemas.end(),
                     [&](const json& schema) { return is_valid(schema, value); });
}

bool none_fits(const json& schema, const json& value, const json&) {
  return !is_valid(schema, value);
}

bool passes(const json&, const json&, const json&) { return true; }

// A keyword of JSON Schema. `check` tests the keyword's argument in the schema; `fits` tests a
// value. `whole` is the schema object that contains the keyword.
struct Keyword {
  const char* name;
  void (*check)(const json& argument, const Place& place);
  bool (*fits)(const json& argument, const json& value, const json& whole);
};

using Compare = bool (*)(double, double);

template <Compare compare>
bool number_fits(const json& bound, const json& value, const json&) {
  return !value.is_number() || compare(value.get<double>(), bound.get<double>());
}

constexpr bool at_least(double value, double bound) { return value >= bound; }
constexpr bool at_most(double value, double bound) { return value <= bound; }
constexpr bool above(double value, double bound) { return value > bound; }
constexpr bool below(double value, double bound) { return value < bound; }

constexpr std::array<Keyword, 26> kKeywords = {{
    {"type", check_types, has_any_type},
    {"enum", check_list, is_one_of},
    {"const", check_nothing, is_same},
    {"properties", check_properties, properties_fit},
    {"required", check_names, has_required},
    {"additionalProperties", check_schema, additional_fit},
    {"items", check_schema, items_fit},
    {"minItems", check_count,
     [](const json& least, const json& value, const json&) {
       return !value.is_array() || size_of(value) >= least.get<int64_t>();
     }},
    {"maxItems", check_count,
     [](const json& most, const json& value, const json&) {
       return !value.is_array() || size_of(value) <= most.get<int64_t>();
     }},
    {"minLength", check_count,
     [](const json& least, const json& value, const json&) {
       return !value.is_string() || characters(value) >= least.get<int64_t>();
     }},
    {"maxLength", check_count,
     [](const json& most, const json& value, const json&) {
       return !value.is_string() || characters(value) <= most.get<int64_t>();
     }},
    {"minimum", check_number, number_fits<at_least>},
    {"maximum", check_number, number_fits<at_most>},
    {"exclusiveMinimum", check_number, number_fits<above>},
    {"exclusiveMaximum", check_number, number_fits<below>},
    {"anyOf", check_schemas, any_fits},
    {"oneOf", check_schemas, one_fits},
    {"allOf", check_schemas, all_fit},
    {"not", check_schema, none_fits},
    {"$schema", check_nothing, passes},
    {"$id", check_nothing, passes},
    {"$comment", check_nothing, passes},
    {"title", check_nothing, passes},
    {"description", check_nothing, passes},
    {"default", check_nothing, passes},
    {"examples", check_nothing, passes},
}};

const Keyword* keyword_of(const std::string& name) {
  const auto found = std::find_if(kKeywords.begin(), kKeywords.end(),
                                  [&](const Keyword& keyword) { return name == keyword.name; });
  return found == kKeywords.end() ? nullptr : &*found;
}

void check_schema(const json& schema, const Place& place) {
  if (schema.is_boolean()) return;
  if (!schema.is_object())
    refuse(place,
           fmt::format("wanted a schema: an object, true or false; found {}", schema.dump()));
  for (const auto& [name, argument] : schema.items()) {
    const Keyword* const keyword = keyword_of(name);
    if (keyword == nullptr)
      refuse(inside(place, name),
             fmt::format("the schema's keyword `{}` is not checked here", name),
             "leave it out, or check it with a tool of its own");
    keyword->check(argument, inside(place, name));
  }
}

bool is_valid(const json& schema, const json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  return std::all_of(schema.items().begin(), schema.items().end(), [&](const auto& member) {
    return keyword_of(member.key())->fits(member.value(), value, schema);
  });
}

}  // namespace

JsonSchema::JsonSchema(json schema, const std::filesystem::path& file)
    : schema_(std::move(schema)) {
  check_schema(schema_, {file, ""});
}

JsonSchema JsonSchema::load(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  const std::string path = file.string();
  if (nested_deeper(text))
    throw ConfigError("the schema is nested too deep",
                      {.file = path, .hint = "write it with fewer levels"});
  try {
    return JsonSchema(json::parse(text), file);
  } catch (const json::exception& error) {
    throw ConfigError(
        fmt::format("wanted a JSON schema: {}", json_reason(error.what())),
        {.file = path,
         .hint = "name a file that holds a JSON schema: {\"type\": \"object\", ...}"});
  }
}

bool JsonSchema::accepts(const json& value) const { return is_valid(schema_, value); }

bool JsonSchema::accepts_text(std::string_view text) const {
  text = trimmed(text);
  if (text.empty() || nested_deeper(text)) return false;
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return !value.is_discarded() && is_valid(schema_, value);
}

}  // namespace convoy::evaluate
