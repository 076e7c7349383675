// SPDX-License-Identifier: Apache-2.0
//
// The messages of a chat, in the form that chat templates read.
#pragma once

#include "convoy/apps/recipes/serving/api_fields.h"

namespace convoy::recipes {

// Reads `messages`. Arguments of tool calls are texts in OpenAI's API: they become the objects that
// the texts contain ({"invalid_json": TEXT} for a text without an object). A content that is
// missing beside tool calls becomes an empty text. Throws ApiError.
Json read_messages(FieldReader& fields);

// Reads `chat_template_kwargs`, `reasoning_effort` and `verbosity`; empty without them. Throws
// ApiError.
Json read_template_kwargs(FieldReader& fields);

}  // namespace convoy::recipes
