// SPDX-License-Identifier: Apache-2.0
//
// Handles contents that are lists of text parts, for chat templates that read only strings: such a
// template would write the list in Python's notation.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/data/text/chat_template.h"

namespace convoy::data {

// True when a content is a list.
bool has_content_parts(const nlohmann::ordered_json& messages);

// Returns the conversation with text parts joined by line breaks, for every role whose parts the
// template does not read. A template reads the parts of a role when one part and its plain text
// give equal output.
nlohmann::ordered_json with_readable_contents(const text::ChatTemplate& chat_template,
                                              const nlohmann::ordered_json& messages,
                                              const nlohmann::ordered_json& variables);

}  // namespace convoy::data
