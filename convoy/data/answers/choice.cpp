// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/choice.h"

#include <algorithm>
#include <string>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/spellings.h"

namespace convoy::answers {
namespace {

struct Choice {
  char letter = 0;
  std::span<const Token> text = {};
};

bool is_option_letter(const Token& token) {
  return token.type == TokenType::Letter && token.text.size() == 1 && token.text[0] >= 'A' &&
         token.text[0] <= 'J';
}

bool is_filler(const Token& token) {
  const std::string low = lowered(token.text);
  return token.type == TokenType::Word && (low == "option" || low == "choice" || low == "answer");
}

std::optional<Choice> choice_of(std::span<const Token> tokens) {
  bool named = false;
  while (!tokens.empty() && is_filler(tokens.front())) {
    tokens = tokens.subspan(1);
    named = true;
  }
  // Words before the letter are dropped: "I choose option C".
  if (tokens.size() > 2 && is_filler(tokens[tokens.size() - 2]) && is_option_letter(tokens.back()))
    tokens = tokens.last(1);
  if (tokens.empty()) return std::nullopt;
  // Braces around the option are dropped: {\bf (B)}.
  while (tokens.size() > 2 && is_sign(tokens.front(), "{") && is_sign(tokens.back(), "}"))
    tokens = tokens.subspan(1, tokens.size() - 2);
  const bool opened = is_sign(tokens.front(), "(") || is_sign(tokens.front(), "[");
  const size_t at = opened ? 1 : 0;
  if (at >= tokens.size()) return std::nullopt;
  const bool closes = tokens.size() == 2 && !opened && is_sign(tokens.back(), ")");
  const bool small = (tokens.size() == at + 1 + at || closes) &&
                     tokens[at].type == TokenType::Letter && tokens[at].text.size() == 1 &&
                     tokens[at].text[0] >= 'a' && tokens[at].text[0] <= 'e' &&
                     (opened || named || closes);
  if (!small && !is_option_letter(tokens[at])) return std::nullopt;
  Choice choice{small ? static_cast<char>(tokens[at].text[0] - 'a' + 'A') : tokens[at].text[0], {}};
  size_t behind = at + 1;
  if (behind == tokens.size()) return opened ? std::nullopt : std::optional(choice);
  const bool closed = is_sign(tokens[behind], ")") || is_sign(tokens[behind], "]");
  if (!closed && (opened || !(is_sign(tokens[behind], ".") || is_sign(tokens[behind], ":"))))
    return std::nullopt;
  ++behind;
  choice.text = tokens.subspan(behind);
  // Several options: (A) and (C), (A)(B).
  if (!choice.text.empty()) {
    const Token& first = choice.text.front();
    const std::string low = lowered(first.text);
    static constexpr std::string_view kGoesOn[] = {",", ";", "and", "or", "+", "-", "*", "/",
                                                   "=", "^", "_",   ":",  "<", ">", "&"};
    if (std::find(std::begin(kGoesOn), std::end(kGoesOn), low) != std::end(kGoesOn))
      return std::nullopt;
    if (opened && is_sign(first, "(") && choice.text.size() <= 3) return std::nullopt;
  }
  return choice;
}

bool are_circled(const std::string& letters) { return !letters.empty() && letters[0] >= 'a'; }

// The letters of a list of options: "A, C", "AC" and "A and C" give "AC", "①③" gives "ac". Empty
// when there are other tokens.
std::string letters_of(std::span<const Token> tokens) {
  std::string letters;
  for (const Token& token : tokens) {
    const std::string low = lowered(token.text);
    if (low == "and" || low == "," || low == ";" || low == "(" || low == ")" || low == "\\{" ||
        low == "\\}" || low == "&")
      continue;
    if (token.type != TokenType::Letter && token.type != TokenType::Word) return {};
    if (const int number = circled_number(token.text); number > 0) {
      letters += static_cast<char>('a' + number - 1);
      continue;
    }
    for (const char letter : token.text) {
      if (letter < 'A' || letter > 'H') return {};
      letters += letter;
    }
  }
  std::sort(letters.begin(), letters.end());
  return std::adjacent_find(letters.begin(), letters.end()) == letters.end() ? letters : "";
}

}  // namespace

std::optional<Verdict> compare_choices(std::span<const Token> gold,
                                       std::span<const Token> prediction) {
  const std::string wanted_letters = letters_of(gold);
  const std::string told_letters = letters_of(prediction);
  if (are_circled(wanted_letters) && are_circled(told_letters))
    return wanted_letters == told_letters ? Verdict::Yes : Verdict::No;
  if (are_circled(wanted_letters) != are_circled(told_letters)) return Verdict::Unknown;
  if (!wanted_letters.empty() && !told_letters.empty() &&
      std::max(wanted_letters.size(), told_letters.size()) > 1)
    return wanted_letters == told_letters ? Verdict::Yes : Verdict::No;
  const std::optional<Choice> wanted = choice_of(gold);
  const std::optional<Choice> told = choice_of(prediction);
  if (!wanted || !told) return std::nullopt;
  return wanted->letter == told->letter ? Verdict::Yes : Verdict::No;
}

bool is_choice(std::span<const Token> tokens) {
  const std::optional<Choice> choice = choice_of(tokens);
  return choice && choice->text.empty();
}

char letter_of_choice(std::span<const Token> tokens) {
  const std::optional<Choice> choice = choice_of(tokens);
  return choice ? choice->letter : '\0';
}

std::vector<Token> text_of_choice(std::span<const Token> tokens) {
  const std::optional<Choice> choice = choice_of(tokens);
  if (!choice) return {};
  return {choice->text.begin(), choice->text.end()};
}

}  // namespace convoy::answers
