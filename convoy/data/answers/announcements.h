// SPDX-License-Identifier: Apache-2.0
//
// Words that announce an answer, in English, Chinese and Russian: "The answer is", "故选：", "Ответ:".
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// `text` up to the end of its first sentence: a point without a digit after it, outside formulas.
std::string_view sentence(std::string_view text);

// The answer that the last such words announce, up to the end of the sentence; empty when there
// are none.
std::string announced_answer(std::string_view text);

}  // namespace convoy::answers
