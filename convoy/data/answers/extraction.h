// SPDX-License-Identifier: Apache-2.0
//
// Extracts the answer from a text: a model's reasoning, or a data set's solution.
#pragma once

#include <string>
#include <string_view>

#include "convoy/data/answers/qualifiers.h"

namespace convoy::answers {

// The author of a text. A reference is taken literally, but "proof", "notfound" and similar words
// count as no answer. In a model's text without an explicit answer, the last formula or number is
// the answer.
enum class Author { Reference, Model };

// Searches in this order: the last balanced \boxed{} or \fbox{} (with further boxes right before
// it, joined by commas or "and"); the text behind the last "####"; the text behind the last "answer
// is" or "answer:"; the whole text when it is a bare answer. Ignores <think> blocks. Empty when
// there is no answer. Linear in the length of the text.
std::string extract_answer(std::string_view text, Author author = Author::Model);

// The words beside the number of `answer`, which extract_answer() took from the model's `text`: in
// the box, behind "####", or else in the sentence. Both parts are empty for an answer without a
// number that no words announce.
NumberContext number_context(std::string_view text, std::string_view answer);

// True when a box, a "####" or words mark an answer. Without a mark extract_answer() takes the part
// of the text that looks like an answer.
bool marks_answer(std::string_view text);

}  // namespace convoy::answers
