// SPDX-License-Identifier: Apache-2.0
//
// Extracts the answer from a text: a model's reasoning, or a data set's solution.
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// References are taken literally, but "proof", "notfound" and similar count as no answer. In a
// prediction without an explicit answer, the last formula or number is the answer.
enum class Author { Reference, Model };

// Search order: the last balanced \boxed{} or \fbox{} (with those right before it, separated by
// commas or "and"), the text after the last "####", the text after the last "answer is" or
// "answer:", the whole text when it is bare. Ignores <think> parts. Empty when there is no answer.
// Linear in the length of the text.
std::string extract_answer(std::string_view text, Author author = Author::Model);

// True where a box, a "####" or words mark an answer; else extract_answer() takes what looks like
// one.
bool marks_answer(std::string_view text);

}  // namespace convoy::answers
