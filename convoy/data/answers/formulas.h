// SPDX-License-Identifier: Apache-2.0
//
// Formulas and numbers within a text: $..$, $$..$$, \(..\) and \[..\].
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::answers {

struct Formula {
  size_t begin;  // position of the opening sign
  size_t end;    // position behind the closing sign
  std::string_view content;
};

// The formulas of `text`, up to an opening sign without a closing one.
std::vector<Formula> formulas(std::string_view text);

// The text of formula number `last`, with the formulas before it that commas and words join to it:
// "$1$ and $2$".
std::string joined_to(std::string_view text, const std::vector<Formula>& all, size_t last);

// True for digits, separators, the fraction line and the percent sign.
bool is_number_letter(char letter);

// The last formula or number.
std::string last_mathematics(std::string_view text);

// Number of words of two letters or more that are not LaTeX.
size_t plain_words(std::string_view text);

// Like plain_words(), without the words in formulas.
size_t words_around_formulas(std::string_view text);

}  // namespace convoy::answers
