// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_form.h"

#include <fmt/format.h>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_text.h"

namespace convoy::recipes {
namespace {

constexpr const char* kAnyObject = R"({"type":"object"})";
constexpr int64_t kMostListed = 10'000;

AskedForm of_schema(const Json& schema, const std::string& field) {
  if (!schema.is_object()) FieldReader::refuse(field, "a JSON Schema", schema);
  return {{text::GrammarKind::JsonSchema, schema.dump()}, field};
}

// Null where the text is no JSON, which of_schema() refuses.
Json schema_in(const std::string& text) {
  try {
    return io::parse_json(text, "");
  } catch (const DataError&) {
    return {};
  }
}

// {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}. Every schema is kept
// strictly, whatever `strict` says.
AskedForm read_named_schema(FieldReader& format) {
  const std::string place = "response_format.json_schema";
  const Json* given = format.object("json_schema");
  if (given == nullptr)
    throw ApiError(400, fmt::format("`{}` is missing", place), place, "invalid_value");
  FieldReader named(*given, place);
  named.text("name");
  named.text("description");
  named.flag("strict");
  const Json* schema = named.find("schema");
  named.require_nothing_else();
  return of_schema(schema == nullptr ? Json() : *schema, place + ".schema");
}

std::optional<AskedForm> read_response_format(FieldReader& fields) {
  const Json* given = fields.object("response_format");
  if (given == nullptr) return {};
  FieldReader format(*given, "response_format");
  const std::string type = format.text("type");
  std::optional<AskedForm> form;
  if (type == "json_schema")
    form = read_named_schema(format);
  else if (type == "json_object")
    form = AskedForm{{text::GrammarKind::JsonSchema, kAnyObject}, "response_format"};
  else if (type != "text")
    FieldReader::refuse("response_format.type", "\"text\", \"json_object\" or \"json_schema\"",
                        type);
  format.require_nothing_else();
  return form;
}

AskedForm read_choices(const Json& choices, const std::string& field) {
  if (choices.is_array() && std::ssize(choices) > kMostListed)
    throw ApiError(
        400,
        fmt::format("`{}` has {} texts; at most {} are served", field, choices.size(), kMostListed),
        field, "invalid_value");
  bool are_texts = choices.is_array() && !choices.empty();
  if (are_texts)
    for (const Json& choice : choices)
      are_texts &= choice.is_string() && !choice.get_ref<const std::string&>().empty();
  if (!are_texts)
    FieldReader::refuse(field, fmt::format("a list of 1 to {} texts", kMostListed), choices);
  return {{text::GrammarKind::Choice, choices.dump()}, field};
}

std::optional<AskedForm> read_structured_outputs(FieldReader& fields) {
  const Json* given = fields.object("structured_outputs");
  if (given == nullptr) return {};
  const std::string place = "structured_outputs";
  FieldReader outputs(*given, place);
  std::optional<AskedForm> form;
  const auto take = [&](AskedForm one) {
    if (form)
      throw ApiError(
          400, fmt::format("`{}` and `{}` exclude each other: keep one", form->field, one.field),
          one.field, "invalid_value");
    form = std::move(one);
  };
  // A schema may also be a text, as in vLLM.
  if (const Json* schema = outputs.find("json"))
    take(of_schema(schema->is_string() ? schema_in(schema->get<std::string>()) : *schema,
                   place + ".json"));
  if (outputs.find("regex") != nullptr)
    take({{text::GrammarKind::Regex, outputs.text("regex")}, place + ".regex"});
  if (const Json* choices = outputs.find("choice")) take(read_choices(*choices, place + ".choice"));
  if (outputs.find("grammar") != nullptr)
    take({{text::GrammarKind::Lark, outputs.text("grammar")}, place + ".grammar"});
  if (outputs.flag("json_object"))
    take({{text::GrammarKind::JsonSchema, kAnyObject}, place + ".json_object"});
  outputs.require_nothing_else();
  if (!form)
    throw ApiError(400, "`structured_outputs` needs one of json, regex, choice, grammar",
                   "structured_outputs", "invalid_value");
  return form;
}

void refuse_older_names(FieldReader& fields) {
  for (const char* const kind : {"json", "regex", "choice", "grammar"})
    if (const std::string name = fmt::format("guided_{}", kind); fields.find(name) != nullptr)
      throw ApiError(400,
                     fmt::format("`{}` is an older name: write \"structured_outputs\": {{\"{}\": "
                                 "...}}, as vLLM does today",
                                 name, kind),
                     name, "unsupported_parameter");
}

}  // namespace

std::optional<AskedForm> read_form(FieldReader& fields) {
  refuse_older_names(fields);
  std::optional<AskedForm> format = read_response_format(fields);
  std::optional<AskedForm> outputs = read_structured_outputs(fields);
  if (format && outputs)
    throw ApiError(400, "`response_format` and `structured_outputs` exclude each other: keep one",
                   "structured_outputs", "invalid_value");
  return format ? format : outputs;
}

}  // namespace convoy::recipes
