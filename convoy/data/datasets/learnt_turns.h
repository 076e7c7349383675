// SPDX-License-Identifier: Apache-2.0
//
// Locates the learnt turns in a rendered conversation. Templates may have {% generation %} tags or
// not.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/supervision.h"
#include "convoy/data/datasets/turn_finder.h"
#include "convoy/data/datasets/unwritten.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::data {

struct LearntTurns {
  std::string text;
  std::vector<TurnSpan> spans;  // in the order of the text
  Unwritten unwritten = {};     // of the conversation
  bool by_tags = false;         // the spans of the assistant are the template's own
  int64_t renders = 0;          // of the template
};

// Spans of the turns of `roles` among messages[first_message..]. Turns of others than the assistant
// begin with their content; a message that the template does not write has none. Of the assistant:
// with tags the spans are as the template says. Without, a turn begins where rendering the messages
// before it with the generation prompt ends, and ends where rendering up to it ends; a template
// that writes a turn differently once others follow it (that drops earlier reasoning, say) is
// probed instead. Throws DataError when the turn cannot be located for certain. Of many turns a few
// are located so; the others by what those have in common (turn_marks.h). An answer of which the
// template writes nothing has a span only with EmptyAnswers::Learn, and with EmptyAnswers::Error
// throws DataError.
LearntTurns find_learnt_turns(const text::ChatTemplate& chat_template,
                              const nlohmann::ordered_json& messages,
                              const nlohmann::ordered_json& variables, size_t first_message,
                              const std::vector<std::string>& roles,
                              EmptyAnswers empty_answers = EmptyAnswers::Skip);

// Marks the tokens that overlap the turns: with tags exactly, otherwise up to and with the
// end-of-turn token, so that the line break after it is not learnt. `ends` says which of those
// end-of-turn tokens are; All takes every token of the text that is one of those which end the
// learnt turns.
std::vector<uint8_t> mask_of(const LearntTurns& turns, const text::Encoding& encoding,
                             const text::Tokenizer& tokenizer, LearntEnds ends);

}  // namespace convoy::data
