// SPDX-License-Identifier: Apache-2.0
//
// The arguments of tool calls: an object, or a text that holds an object (OpenAI's form). A
// template reads one of these two forms, or both.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/datasets/chats/message_texts.h"

namespace convoy::data {

struct ReadableArguments {
  nlohmann::ordered_json messages;
  // The first message with arguments of a wrong form: a text that holds no object, a list, or a
  // number. If the template has its own way to write objects, a text that is no JSON may be written
  // in that way, and is none of them.
  std::optional<size_t> unreadable = {};
};

// Returns the conversation with the arguments of its calls in the form that the template reads. The
// form is found by rendering the conversation with test arguments. A text that holds a JSON object,
// or nothing, becomes an object if the template quotes a text once more, or writes objects in its
// own way. An object becomes a JSON text if the template takes only texts, or prints objects as
// Python does. Arguments stay unchanged if both forms give the same output, and so does a text
// without an object, which is noted.
ReadableArguments with_readable_arguments(const RenderTexts& render,
                                          const nlohmann::ordered_json& messages);

// The first message whose arguments are a text that `rendered` lacks or holds only in quotes.
std::optional<size_t> message_with_lost_arguments(const nlohmann::ordered_json& messages,
                                                  const std::string& rendered);

// The arguments of a message's calls, as far as they are texts.
std::vector<std::string> argument_texts(const nlohmann::ordered_json& message);

}  // namespace convoy::data
