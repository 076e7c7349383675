// SPDX-License-Identifier: Apache-2.0
//
// Compares the parts of two answers that their trees do not hold: adjectives, the labels of counts,
// accents, logical signs, dots behind a list, nested sets, dates.
#pragma once

#include <span>
#include <string_view>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

struct WrittenAnswer {
  std::string_view text;
  std::span<const Token> tokens;
};

// True when two answers with equal trees are written with different marks or words, so that they
// may be two answers.
bool differ_in_marks(const WrittenAnswer& a, const WrittenAnswer& b);

// True when one answer has a vector between two points and the other one its reverse: \vec{AB} and
// \vec{BA}. In trees both are one product, so that they tell nothing about the signs.
bool turn_an_arrow(std::string_view a, std::string_view b);

}  // namespace convoy::answers
