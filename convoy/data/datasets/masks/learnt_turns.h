// SPDX-License-Identifier: Apache-2.0
//
// Locates the supervised turns in a rendered conversation, with or without {% generation %} tags in
// the template.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/chats/readable_chat.h"
#include "convoy/data/datasets/chats/unwritten.h"
#include "convoy/data/datasets/masks/supervision.h"
#include "convoy/data/datasets/masks/turn_finder.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::data {

struct LearntTurns {
  std::string text;
  std::vector<TurnSpan> spans;  // in the order of the rendered text
  Unwritten unwritten = {};     // parts that the template left out
  bool by_tags = false;         // true: assistant spans come from the template's tags
  int64_t renders = 0;          // number of template renders
};

// Finds the turns of `roles` among messages[first_message..] of `chat`, which was rendered without
// a generation prompt. A message that the template does not write has no span. The turn of a role
// other than assistant begins with its content.
//
// Assistant turns: a template with tags marks the spans itself. Without tags, a turn begins where
// the rendering of the messages before it, with the generation prompt, ends; it ends where the
// rendering of the messages up to it ends. A template that writes a turn differently when other
// turns follow (for example, one that drops earlier reasoning) is probed instead. If there are many
// turns, only a few are located this way. The other ones are located by the text around them, which
// all turns have in common (turn_marks.h).
//
// No span holds the text of a message of another role, or of another turn. An answer for which the
// template writes nothing has a span only with EmptyAnswers::Learn; with EmptyAnswers::Error it
// throws DataError. Throws DataError when a turn cannot be located with certainty.
LearntTurns find_learnt_turns(const text::ChatTemplate& chat_template, const ReadableChat& chat,
                              const nlohmann::ordered_json& variables, size_t first_message,
                              const std::vector<std::string>& roles,
                              EmptyAnswers empty_answers = EmptyAnswers::Skip);

// Removes the text that closes the conversation, or opens the next turn, from the turns. A template
// may write such a text behind the last turn. It is no part of the turn if the turn has an end
// token of its own, which it also has when another turn follows.
void leave_out_end_of_conversation(LearntTurns& turns, const text::ChatTemplate& chat_template,
                                   const ReadableChat& chat,
                                   const nlohmann::ordered_json& variables,
                                   const text::Encoding& encoding,
                                   const text::Tokenizer& tokenizer);

// Marks the tokens that overlap the turns. With tags a turn has exactly its span; without tags it
// ends with its end-of-turn token, so that the line break behind this token is not supervised. A
// turn without such a token ends with EOS if the text has it directly behind the turn.
// `ends` selects the supervised end-of-turn tokens. All includes every token of the text that
// equals an end token of a supervised turn.
std::vector<uint8_t> mask_of(const LearntTurns& turns, const text::Encoding& encoding,
                             const text::Tokenizer& tokenizer, LearntEnds ends);

}  // namespace convoy::data
