// SPDX-License-Identifier: Apache-2.0
//
// Converts samples to rows of a schema: the inverse of convert_row().
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/schemas/schema.h"

namespace convoy::data {

// Returns the row of `schema` that holds the sample. In chat schemas, the texts of prompt and
// completion become a turn of the user and one of the assistant. Nothing is dropped silently:
// throws DataError with the row's place for parts that the schema cannot hold (turns, roles, tool
// calls, a system turn, text without turns).
nlohmann::ordered_json row_of(const Sample& sample, Schema schema);

// The text of a message: a string, or its text parts concatenated.
std::string content_text(const nlohmann::ordered_json& message);

}  // namespace convoy::data
