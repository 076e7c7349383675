// SPDX-License-Identifier: Apache-2.0
//
// Finds important parts of a conversation that a chat template leaves out: tools, documents, tool
// calls, reasoning, answers without text. Detected by rendering the conversation without them.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convoy::data {

using RenderWhole = std::function<std::string(const nlohmann::ordered_json& messages,
                                              const nlohmann::ordered_json& variables)>;

struct Unwritten {
  bool tools = false;                // there are `tools`, and none of them is written
  bool documents = false;            // there are `documents`, and none of them is written
  bool calls = false;                // turns have `tool_calls`, and none of them is written
  bool reasoning = false;            // turns have reasoning, and none of it is written
  std::vector<size_t> answers = {};  // indices of the unwritten assistant messages
};

// Examines messages[first_message..] of `full`, the rendered conversation. It renders nothing when
// the conversation has none of these parts.
Unwritten find_unwritten(const RenderWhole& render, const nlohmann::ordered_json& messages,
                         const nlohmann::ordered_json& variables, const std::string& full,
                         size_t first_message);

// True when the content of a message is missing or only white space.
bool has_blank_content(const nlohmann::ordered_json& message);

}  // namespace convoy::data
