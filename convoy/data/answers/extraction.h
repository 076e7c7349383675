// SPDX-License-Identifier: Apache-2.0
//
// The answer in a text: of a model that reasons before it answers, or of a data set's solution.
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// References are taken at their word, but for "proof", "notfound" and their like, which are none;
// of predictions that name no answer the last formula or number is one.
enum class Author { Reference, Model };

// In this order: the last balanced \boxed{} or \fbox{} (with those right before it, parted by
// commas or "and"), what follows the last "####", what follows the last "answer is" or "answer:",
// the whole text where it is bare. Nothing of a <think> part counts. Empty where there is no
// answer. Linear in the length of the text.
std::string extract_answer(std::string_view text, Author author = Author::Model);

}  // namespace convoy::answers
