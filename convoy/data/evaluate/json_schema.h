// SPDX-License-Identifier: Apache-2.0
//
// Whether a text is JSON of a wanted shape: the part of JSON Schema that such checks use. A keyword
// that it does not know is refused, not passed over. Known: type, enum, const, properties,
// required, additionalProperties, items, minItems, maxItems, minLength, maxLength (characters),
// minimum, maximum, exclusiveMinimum, exclusiveMaximum, anyOf, oneOf, allOf, not; and the notes
// $schema, $id, $comment, title, description, default, examples.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace convoy::evaluate {

class JsonSchema {
 public:
  // Throws ConfigError naming the place of what it does not take.
  explicit JsonSchema(nlohmann::json schema, const std::filesystem::path& file = {});
  static JsonSchema load(const std::filesystem::path& file);

  bool accepts(const nlohmann::json& value) const;
  // `text` is one JSON value, white space around it aside, and accepted.
  bool accepts_text(std::string_view text) const;

 private:
  nlohmann::json schema_;
};

}  // namespace convoy::evaluate
