// SPDX-License-Identifier: Apache-2.0
//
// The arguments of tool calls, which are an object, or a text that holds one (OpenAI's form). A
// template that writes them with `tojson` encodes such a text once more.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace convoy::data {

// True when the arguments of a tool call are a text.
bool has_text_arguments(const nlohmann::ordered_json& messages);

// Texts that hold a JSON object, or nothing, become objects; others stay.
nlohmann::ordered_json with_object_arguments(const nlohmann::ordered_json& messages);

// The first message with a text as arguments that `rendered` holds in quotes, or not at all.
std::optional<size_t> message_with_lost_arguments(const nlohmann::ordered_json& messages,
                                                  const std::string& rendered);

}  // namespace convoy::data
