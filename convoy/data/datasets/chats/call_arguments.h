// SPDX-License-Identifier: Apache-2.0
//
// The arguments of tool calls, which are an object, or a text that holds one (OpenAI's form).
// Templates read one of them, or both.
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
  // The first message whose arguments the template would write as they are, or not at all, though
  // it has a way of its own to write objects: a text that begins like JSON, or a list, a number.
  std::optional<size_t> unreadable = {};
};

// The conversation with the arguments of its calls in the form that the template reads, found by
// rendering it with others in their place. Texts that hold a JSON object, or nothing, become
// objects where the template encodes a text once more, or writes objects in a way of its own.
// Objects become JSON texts where it takes only texts, or prints objects as Python does. Arguments
// that are written alike in both forms stay as given, and so does a text that holds no object.
ReadableArguments with_readable_arguments(const RenderTexts& render,
                                          const nlohmann::ordered_json& messages);

// The first message with a text as arguments that `rendered` holds in quotes, or not at all.
std::optional<size_t> message_with_lost_arguments(const nlohmann::ordered_json& messages,
                                                  const std::string& rendered);

// The arguments of a message's calls that are texts.
std::vector<std::string> argument_texts(const nlohmann::ordered_json& message);

}  // namespace convoy::data
