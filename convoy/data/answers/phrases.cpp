// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/phrases.h"

#include <algorithm>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/number_words.h"

namespace convoy::answers {
namespace {

struct Synonym {
  std::string_view phrase;
  std::string_view canonical;
};

constexpr Synonym kSynonyms[] = {
    {"no solutions", "no solution"},
    {"no real solution", "no solution"},
    {"no real solutions", "no solution"},
    {"no integer solutions", "no solution"},
    {"no such solution", "no solution"},
    {"there is no solution", "no solution"},
    {"there are no solutions", "no solution"},
    {"has no solution", "no solution"},
    {"no solution exists", "no solution"},
    {"no solutions exist", "no solution"},
    {"none", "no solution"},
    {"empty set", "no solution"},
    {"no roots", "no solution"},
    {"no real roots", "no solution"},
    {"dne", "does not exist"},
    {"doesnt exist", "does not exist"},
    {"doesn't exist", "does not exist"},
    {"do not exist", "does not exist"},
    {"limit does not exist", "does not exist"},
    {"infinite", "infinitely many"},
    {"infinitely many solutions", "infinitely many"},
    {"infinite solutions", "infinitely many"},
    {"infinite number of solutions", "infinitely many"},
    {"true", "yes"},
    {"false", "no"},
    {"real numbers", "all real numbers"},
    {"all reals", "all real numbers"},
    {"reals", "all real numbers"},
    {"set of all real numbers", "all real numbers"},
    {"set of real numbers", "all real numbers"},
    {"无解", "no solution"},
    {"无实数解", "no solution"},
    {"无实数根", "no solution"},
    {"无实根", "no solution"},
    {"没有解", "no solution"},
    {"空集", "no solution"},
    {"нет решений", "no solution"},
    {"нет корней", "no solution"},
    {"решений нет", "no solution"},
    {"корней нет", "no solution"},
    {"не имеет решений", "no solution"},
    {"пустое множество", "no solution"},
    {"不存在", "does not exist"},
    {"не существует", "does not exist"},
    {"无穷多", "infinitely many"},
    {"无数个", "infinitely many"},
    {"无穷多个", "infinitely many"},
    {"бесконечно много", "infinitely many"},
    {"全体实数", "all real numbers"},
    {"任意实数", "all real numbers"},
    {"一切实数", "all real numbers"},
    {"все действительные числа", "all real numbers"},
    {"любое число", "all real numbers"},
    {"是", "yes"},
    {"对", "yes"},
    {"正确", "yes"},
    {"да", "yes"},
    {"верно", "yes"},
    {"否", "no"},
    {"错", "no"},
    {"错误", "no"},
    {"нет", "no"},
    {"неверно", "no"},
};

}  // namespace

std::optional<std::string> phrase_of(std::span<const Token> tokens) {
  std::string phrase;
  bool any_word = false;
  for (const Token& token : tokens) {
    const bool word = token.type == TokenType::Word;
    any_word = any_word || word;
    if (token.type == TokenType::Sign &&
        (token.text == "," || token.text == "." || token.text == "{" || token.text == "}"))
      continue;
    if (token.type == TokenType::Sign && (token.text == "'" || token.text == "-")) {
      phrase += token.text;
      continue;
    }
    if (!word && token.type != TokenType::Letter && token.type != TokenType::Function)
      return std::nullopt;
    const std::string low = lowered(token.text);
    if (low == "the" || low == "an" || (low == "a" && tokens.size() > 1)) continue;
    if (!phrase.empty() && phrase.back() != '\'' && phrase.back() != '-') phrase += ' ';
    phrase += low;
  }
  if (!any_word || phrase.empty()) return std::nullopt;
  return phrase;
}

std::string canonical_phrase(const std::string& phrase) {
  for (const Synonym& synonym : kSynonyms)
    if (synonym.phrase == phrase) return std::string(synonym.canonical);
  return phrase;
}

bool is_canonical(const std::string& phrase) {
  return std::any_of(std::begin(kSynonyms), std::end(kSynonyms),
                     [&](const Synonym& synonym) { return synonym.canonical == phrase; });
}

std::optional<Node> phrase_node(const std::string& phrase) {
  const std::string canonical = canonical_phrase(phrase);
  if (canonical == "no solution") return make_leaf(Kind::NamedSet, "");
  if (canonical == "all real numbers") return make_leaf(Kind::NamedSet, "R");
  const std::string word[] = {phrase};
  if (const std::optional<int64_t> number = cardinal(word))
    return make_leaf(Kind::Number, std::to_string(*number));
  return std::nullopt;
}

bool declines(const std::string& phrase) {
  static constexpr std::string_view kDeclining[] = {
      "unknown", "unclear",    "not sure",     "unsure", "cannot",  "cannot",
      "can't",   "not enough", "insufficient", "i do",   "i don't", "i cannot",
      "i can",   "i am",       "i'm",          "n a",    "sorry"};
  return std::any_of(std::begin(kDeclining), std::end(kDeclining), [&](std::string_view start) {
    return phrase.starts_with(start) &&
           (phrase.size() == start.size() || !is_letter(phrase[start.size()]));
  });
}

size_t words_in(std::string_view phrase) {
  return static_cast<size_t>(std::count(phrase.begin(), phrase.end(), ' ')) + 1;
}

}  // namespace convoy::answers
