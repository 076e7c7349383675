// SPDX-License-Identifier: Apache-2.0
//
// Splits a model's text into thoughts and answer: "<think>...</think>answer". Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace convoy::process {

struct ThinkText {
  std::string think = {};  // without the tags; empty = none
  std::string said = {};   // the text after the last </think>
  bool is_open = false;    // the text ends inside its thoughts
};

// `prompt_opens_think`: the prompt ended in "<think>", so the text begins inside. A text that
// closes what it never opened began inside, too, whatever the prompt was.
ThinkText split_think(std::string_view text, bool prompt_opens_think);

// True when a rendered prompt ends in "<think>", trailing blanks aside: it leaves a thought open.
bool opens_think(std::string_view rendered_prompt);

// The text without the calls of tools that it makes, <tool_call>{...}</tool_call>: their arguments
// are no answer. A mark that no JSON follows is text.
std::string without_calls(std::string text);

}  // namespace convoy::process
