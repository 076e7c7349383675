// SPDX-License-Identifier: Apache-2.0
//
// Splits a model's text into thoughts and answer: "<think>...</think>answer". Thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace convoy::process {

struct ThinkText {
  std::string think = {};  // without the tags; empty = none
  std::string said = {};   // text after the last </think>
  bool is_open = false;    // the text ends inside its thoughts
};

// `prompt_opens_think`: the prompt ended in "<think>", so the text begins inside the thoughts. A
// text with a closing tag but no opening tag also begins inside them, whatever the prompt was.
ThinkText split_think(std::string_view text, bool prompt_opens_think);

// The turn of a chat that says a text: thoughts are a member of their own, for the chat template.
nlohmann::ordered_json assistant_turn(const std::string& said, const std::string& think);

// True if a rendered prompt ends in "<think>" and possibly blanks: the text then begins inside a
// thought.
bool opens_think(std::string_view rendered_prompt);

// The text without its tool calls, <tool_call>{...}</tool_call>: their arguments are no answer. A
// <tool_call> that is not followed by JSON is text.
std::string without_calls(std::string text);

}  // namespace convoy::process
