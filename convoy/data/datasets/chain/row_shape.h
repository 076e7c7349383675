// SPDX-License-Identifier: Apache-2.0
//
// Samples as rows of a schema again: the inverse of convert_row().
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/schema.h"

namespace convoy::data {

// What a row of `schema` is called when it holds the sample. Texts of prompt and completion become
// a turn of the user and one of the assistant in the chat schemas. Nothing is left out in silence:
// throws DataError with the row's place for what the schema has no room for (turns, roles, tool
// calls, a system turn, text that has no turns).
nlohmann::ordered_json row_of(const Sample& sample, Schema schema);

// The text of a message: a string, or its text parts one after another.
std::string content_text(const nlohmann::ordered_json& message);

}  // namespace convoy::data
