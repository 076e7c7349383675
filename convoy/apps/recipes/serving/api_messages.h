// SPDX-License-Identifier: Apache-2.0
//
// The messages and tools of a chat, in the form that chat templates read.
#pragma once

#include "convoy/apps/recipes/serving/api_fields.h"

namespace convoy::recipes {

// `messages`. Arguments of tool calls, which are texts in OpenAI's API, become the objects that
// they hold ({"invalid_json": TEXT} for a text that holds none), and a content that is missing
// beside tool calls an empty text. Throws ApiError.
Json read_messages(FieldReader& fields);

// `chat_template_kwargs`, `reasoning_effort` and `verbosity`; empty where there are none. Throws
// ApiError.
Json read_template_kwargs(FieldReader& fields);

// `tools`; null where there are none, or `tool_choice` is none. Throws ApiError.
Json read_tools(FieldReader& fields);

}  // namespace convoy::recipes
