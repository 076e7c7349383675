// SPDX-License-Identifier: Apache-2.0
//
// Where the assistant's turns lie in a rendered conversation, for templates with and without {% generation %} tags.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/turn_finder.h"
#include "convoy/text/chat_template.h"
#include "convoy/text/tokenizer.h"

namespace convoy::data {

struct AssistantSpans {
  std::string text;
  std::vector<TurnSpan> turns;
  bool by_tags = false;
  int64_t renders = 0;  // of the template
};

// Spans of the assistant turns among messages[first_message..]. With tags the spans are as the template says. Without,
// a turn begins where rendering the messages before it with the generation prompt ends, and ends where rendering up to
// it ends; a template that writes a turn differently once others follow it (that drops earlier reasoning, say) is
// probed instead. Throws DataError when the turn cannot be located for certain. Of many turns a few are located so; the
// others by what those have in common (turn_marks.h).
AssistantSpans find_assistant_spans(const text::ChatTemplate& chat_template,
                                    const nlohmann::ordered_json& messages,
                                    const nlohmann::ordered_json& variables, size_t first_message);

// Marks the tokens that overlap the turns: with tags exactly, otherwise up to and with the end-of-turn token, so that
// the line break after it is not learnt.
std::vector<uint8_t> mask_of(const AssistantSpans& spans, const text::Encoding& encoding,
                             const text::Tokenizer& tokenizer);

}  // namespace convoy::data
