// SPDX-License-Identifier: Apache-2.0
//
// Words around a number in prose that make it another answer: "is not 12", "at most 12", "half of
// 12", "12 cubed".
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// The words beside an answer's number: the sentence up to the number, and the sentence behind it.
struct NumberContext {
  std::string before = {};
  std::string after = {};
};

// The word or words that change the number, in lower case; empty when there are none.
std::string qualifier_of(const NumberContext& context);

}  // namespace convoy::answers
