// SPDX-License-Identifier: Apache-2.0
//
// Contents that are lists of text parts, for chat templates that read strings alone: such a
// template would write the list as Python prints it.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/data/text/chat_template.h"

namespace convoy::data {

// Whether a content is a list.
bool has_content_parts(const nlohmann::ordered_json& messages);

// The conversation with the parts of a content joined by line breaks, for every role of which the
// template does not read parts. It reads those of a role when it writes the same for one part as
// for its text.
nlohmann::ordered_json with_readable_contents(const text::ChatTemplate& chat_template,
                                              const nlohmann::ordered_json& messages,
                                              const nlohmann::ordered_json& variables);

}  // namespace convoy::data
