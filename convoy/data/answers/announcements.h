// SPDX-License-Identifier: Apache-2.0
//
// Words that announce an answer, in English, Chinese and Russian: "The answer is", "故选：", "Ответ:".
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// The first sentence of `text`. A point ends it unless a digit follows or the point is in a
// formula.
std::string_view sentence(std::string_view text);

// The answer behind the last words that announce one ("the answer is"), up to the end of the
// sentence; empty when no words announce an answer.
std::string announced_answer(std::string_view text);

}  // namespace convoy::answers
