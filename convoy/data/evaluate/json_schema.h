// SPDX-License-Identifier: Apache-2.0
//
// Checks that a text is JSON of an expected shape, with a part of JSON Schema. An unknown keyword
// is refused, not ignored. Supported: type, enum, const, properties, required,
// additionalProperties, items, minItems, maxItems, minLength, maxLength (characters), minimum,
// maximum, exclusiveMinimum, exclusiveMaximum, anyOf, oneOf, allOf, not; and the annotations
// $schema, $id, $comment, title, description, default, examples.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace convoy::evaluate {

class JsonSchema {
 public:
  // `file`: the schema's file, for errors. Throws ConfigError naming the place of an unsupported
  // part.
  explicit JsonSchema(nlohmann::json schema, const std::filesystem::path& file = {});
  static JsonSchema load(const std::filesystem::path& file);

  bool accepts(const nlohmann::json& value) const;
  // True when `text` is one JSON value that the schema accepts. White space around the value is
  // ignored.
  bool accepts_text(std::string_view text) const;

 private:
  nlohmann::json schema_;
};

}  // namespace convoy::evaluate
