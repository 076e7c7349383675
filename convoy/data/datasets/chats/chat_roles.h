// SPDX-License-Identifier: Apache-2.0
//
// The roles of a conversation, as far as a chat template knows them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/text/chat_template.h"

namespace convoy::data {

// The role of a message; empty where it has none, or the role is not a text.
std::string role_of(const nlohmann::ordered_json& message);

// The conversation, where messages of the role `from` have the role `to`.
nlohmann::ordered_json with_role(const nlohmann::ordered_json& messages, const std::string& from,
                                 const std::string& to);

// The conversation, where messages of the role `developer` (OpenAI's newer name of `system`) have
// the role `system`. Empty when there is no such message, or the template names the role
// `developer`.
std::optional<nlohmann::ordered_json> with_system_for_developer(
    const text::ChatTemplate& chat_template, const nlohmann::ordered_json& messages);

// Throws DataError for a role that the template neither names nor writes, because it would write
// the messages under another role. `rendered`: the conversation rendered by this template.
void require_known_roles(const text::ChatTemplate& chat_template,
                         const nlohmann::ordered_json& messages,
                         const nlohmann::ordered_json& variables, bool add_generation_prompt,
                         const std::string& rendered);

// The roles of a conversation, other than user and assistant, that the template does not name.
std::vector<std::string> unnamed_roles(const text::ChatTemplate& chat_template,
                                       const nlohmann::ordered_json& messages);

}  // namespace convoy::data
