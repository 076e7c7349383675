// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/json_schema.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::evaluate {
namespace {

using nlohmann::json;

TEST(JsonSchema, ChecksWhatItIsAsked) {
  const JsonSchema person(json::parse(R"({
    "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a person",
    "type": "object", "required": ["name", "age"], "additionalProperties": false,
    "properties": {"name": {"type": "string", "minLength": 2, "maxLength": 4},
                   "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
                   "kind": {"enum": ["a", 1, null]},
                   "tags": {"type": "array", "items": {"type": ["string", "null"]}, "maxItems": 2}}})"));
  for (const char* good :
       {R"({"name": "Tia", "age": 3})", R"({"name": "日本", "age": 3.0})",
        " \n{\"name\": \"Hana\", \"age\": 0, \"kind\": null, \"tags\": [null, \"x\"]}\t",
        R"({"name": "Tia", "age": 149, "kind": 1.0})"})
    EXPECT_TRUE(person.accepts_text(good)) << good;
  for (const char* bad :
       {"", "Tia", "[]", "null", R"({"name": "Tia"})", R"({"name": "T", "age": 3})",
        R"({"name": "Matthias", "age": 3})", R"({"name": "日", "age": 3})",
        R"({"name": "Tia", "age": 3.5})", R"({"name": "Tia", "age": -1})",
        R"({"name": "Tia", "age": 150})", R"({"name": "Tia", "age": "3"})",
        R"({"name": "Tia", "age": 3, "kind": "b"})", R"({"name": "Tia", "age": 3, "tags": [1]})",
        R"({"name": "Tia", "age": 3, "tags": ["", "", ""]})",
        R"({"name": "Tia", "age": 3, "more": 1})", R"({"name": "Tia", "age": 3} and so on)",
        R"(```json {"name": "Tia", "age": 3}```)", R"({"name": "Tia", "age": true})"})
    EXPECT_FALSE(person.accepts_text(bad)) << bad;
}

TEST(JsonSchema, Combines) {
  const JsonSchema either(json::parse(R"({"anyOf": [{"const": 1}, {"type": "string"}]})"));
  EXPECT_TRUE(either.accepts(1));
  EXPECT_TRUE(either.accepts("x"));
  EXPECT_FALSE(either.accepts(2));
  const JsonSchema one(json::parse(R"({"oneOf": [{"minimum": 1}, {"maximum": 3}]})"));
  EXPECT_TRUE(one.accepts(4));
  EXPECT_FALSE(one.accepts(2));
  const JsonSchema all(json::parse(R"({"allOf": [{"type": "number"}, {"not": {"const": 2}}]})"));
  EXPECT_TRUE(all.accepts(3));
  EXPECT_FALSE(all.accepts(2));
  EXPECT_FALSE(JsonSchema(false).accepts(1));
  EXPECT_TRUE(JsonSchema(json::object()).accepts(1));
}

TEST(JsonSchema, RefusesWhatItDoesNotCheck) {
  const auto key_of = [](const char* text) {
    try {
      JsonSchema(json::parse(text), "shape.json");
      return std::string("taken");
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.location().file, "shape.json");
      return error.location().key;
    }
  };
  EXPECT_EQ(key_of(R"({"properties": {"a": {"pattern": "^x"}}})"), "properties/a/pattern");
  EXPECT_EQ(key_of(R"({"items": {"type": "text"}})"), "items/type");
  EXPECT_EQ(key_of(R"({"required": [1]})"), "required");
  EXPECT_EQ(key_of(R"({"minItems": -1})"), "minItems");
  EXPECT_EQ(key_of(R"({"anyOf": [{}, 3]})"), "anyOf/1");
  EXPECT_EQ(key_of(R"([])"), "");
}

TEST(JsonSchema, DeepTextsAreRefusedNotFollowed) {
  const JsonSchema any(true);
  EXPECT_FALSE(any.accepts_text(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace convoy::evaluate
