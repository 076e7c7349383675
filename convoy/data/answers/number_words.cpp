// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/number_words.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

constexpr size_t kMostWords = 24;  // per number

constexpr std::string_view kSmall[] = {"zero",    "one",     "two",       "three",    "four",
                                       "five",    "six",     "seven",     "eight",    "nine",
                                       "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                       "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::string_view kTens[] = {"twenty", "thirty",  "forty",  "fifty",
                                      "sixty",  "seventy", "eighty", "ninety"};

struct Scale {
  std::string_view word;
  int64_t value;
};
constexpr Scale kScales[] = {
    {"thousand", 1000}, {"million", 1000000}, {"billion", 1000000000}, {"trillion", 1000000000000}};
constexpr Scale kParts[] = {{"half", 2},  {"third", 3},  {"quarter", 4},  {"fourth", 4},
                            {"fifth", 5}, {"sixth", 6},  {"seventh", 7},  {"eighth", 8},
                            {"ninth", 9}, {"tenth", 10}, {"twelfth", 12}, {"hundredth", 100}};

template <size_t kSize>
std::optional<int64_t> place_in(const std::string_view (&list)[kSize], std::string_view word) {
  const auto found = std::find(std::begin(list), std::end(list), word);
  if (found == std::end(list)) return std::nullopt;
  return found - std::begin(list);
}

template <size_t kSize>
std::optional<int64_t> value_in(const Scale (&list)[kSize], std::string_view word) {
  for (const Scale& scale : list)
    if (scale.word == word) return scale.value;
  return std::nullopt;
}

// The denominator that a word names behind a numerator: "thirds" behind two or more, "third" behind
// one. Empty otherwise: "twenty third" is an ordinal.
std::optional<int64_t> parts(std::string_view word, int64_t count) {
  if (count == 1) return value_in(kParts, word);
  if (word == "halves") return 2;
  if (!word.ends_with('s')) return std::nullopt;
  return value_in(kParts, word.substr(0, word.size() - 1));
}

struct Word {
  std::string text;
  size_t end;  // position behind its last token
};

// The words from token `at` on, split at hyphens, without articles.
std::vector<Word> words_from(std::span<const Token> tokens, size_t at) {
  std::vector<Word> words;
  for (; at < tokens.size() && words.size() < kMostWords; ++at) {
    const Token& token = tokens[at];
    const std::string low = lowered(token.text);
    if (token.type == TokenType::Sign && low == "-" && !words.empty()) continue;
    if ((token.type == TokenType::Letter && low == "a") || low == "an") {
      continue;
    } else if (token.type != TokenType::Word) {
      break;
    }
    words.push_back({low, at + 1});
  }
  return words;
}

struct Written {
  int64_t whole = 0;
  int64_t above = 0;  // numerator of the fraction that follows the whole number
  int64_t below = 1;
  size_t words = 0;
};

// The longest number at the start of the words.
std::optional<Written> number_at(std::span<const std::string> words) {
  for (size_t count = words.size(); count > 0; --count) {
    const std::optional<int64_t> value = cardinal(words.first(count));
    if (!value) continue;
    const std::span<const std::string> rest = words.subspan(count);
    if (!rest.empty())
      if (const std::optional<int64_t> below = parts(rest[0], *value))
        return Written{0, *value, *below, count + 1};
    if (rest.size() > 1 && (rest[0] == "and" || rest[0] == "over")) {
      const std::optional<Written> behind = number_at(rest.subspan(1));
      if (behind && rest[0] == "and" && behind->above > 0 && behind->whole == 0)
        return Written{*value, behind->above, behind->below, count + 1 + behind->words};
      if (behind && rest[0] == "over" && behind->above == 0 && behind->whole > 0)
        return Written{0, *value, behind->whole, count + 1 + behind->words};
    }
    return Written{*value, 0, 1, count};
  }
  if (!words.empty())
    if (const std::optional<int64_t> below = parts(words[0], 1); below && *below <= 4)
      return Written{0, 1, *below, 1};
  return std::nullopt;
}

void add_digits(const Written& number, std::vector<Token>& into) {
  const auto add = [&](TokenType type, std::string text) {
    into.push_back({type, std::move(text), true, true});
  };
  if (number.above == 0) return add(TokenType::Number, std::to_string(number.whole));
  add(TokenType::Sign, "(");
  if (number.whole > 0) {
    add(TokenType::Number, std::to_string(number.whole));
    add(TokenType::Sign, "+");
  }
  add(TokenType::Number, std::to_string(number.above));
  add(TokenType::Sign, "/");
  add(TokenType::Number, std::to_string(number.below));
  add(TokenType::Sign, ")");
}

}  // namespace

std::optional<int64_t> cardinal(std::span<const std::string> words) {
  if (words.empty() || words.size() > kMostWords) return std::nullopt;
  if (words.size() == 1 && words[0] == "zero") return 0;
  int64_t total = 0;
  int64_t group = 0;
  int64_t smallest_scale = INT64_MAX;
  for (size_t index = 0; index < words.size(); ++index) {
    const std::string& word = words[index];
    if (word == "and") {
      const bool behind_scale = index > 0 && (words[index - 1] == "hundred" ||
                                              value_in(kScales, words[index - 1]).has_value());
      if (!behind_scale || index + 1 == words.size()) return std::nullopt;
    } else if (const std::optional<int64_t> small = place_in(kSmall, word)) {
      const bool fits = group % 100 == 0 || (*small < 10 && group % 10 == 0 && group % 100 > 10);
      if (*small == 0 || !fits) return std::nullopt;
      group += *small;
    } else if (const std::optional<int64_t> ten = place_in(kTens, word)) {
      if (group % 100 != 0) return std::nullopt;
      group += 10 * (*ten + 2);
    } else if (word == "hundred") {
      if (group > 99 || (group == 0 && index > 0)) return std::nullopt;
      group = group == 0 ? 100 : group * 100;
    } else if (word == "dozen") {
      if (total > 0 || group > 99 || index + 1 != words.size()) return std::nullopt;
      group = 12 * (group == 0 ? 1 : group);
    } else if (const std::optional<int64_t> scale = value_in(kScales, word)) {
      if (*scale >= smallest_scale || (group == 0 && index > 0)) return std::nullopt;
      total += (group == 0 ? 1 : group) * *scale;
      group = 0;
      smallest_scale = *scale;
    } else {
      return std::nullopt;
    }
  }
  return total + group;
}

std::optional<std::vector<Token>> in_digits(std::span<const Token> tokens) {
  if (tokens.empty()) return std::nullopt;
  std::vector<Token> digits;
  size_t at = 0;
  const std::string first = lowered(tokens[0].text);
  const bool says_sign = first == "negative" || first == "minus" || first == "positive";
  if (tokens.size() > 1 && (says_sign || first == "-")) {
    digits.push_back({TokenType::Sign, first == "positive" ? "+" : "-", false, true});
    at = 1;
  }
  const std::vector<Word> words = words_from(tokens, at);
  std::vector<std::string> texts;
  for (const Word& word : words) texts.push_back(word.text);
  const std::optional<Written> number = number_at(texts);
  if (number) {
    add_digits(*number, digits);
    at = words[number->words - 1].end;
    if (at < tokens.size() && tokens[at].text == "-") return std::nullopt;  // an ordinal
  } else if (!says_sign || at == 0 || tokens[at].type == TokenType::Word) {
    return std::nullopt;  // no number: "negative slope"
  }
  digits.insert(digits.end(), tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end());
  return digits;
}

}  // namespace convoy::answers
