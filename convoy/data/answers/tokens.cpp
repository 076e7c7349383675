// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/tokens.h"

#include <algorithm>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/spellings.h"

namespace convoy::answers {
namespace {

constexpr int kMaxTextDepth = 8;  // nested \text{\text{...}}

class Tokenizer {
 public:
  Tokenizer(const Spelling& spelling, Steps& steps) : spelling_(spelling), steps_(steps) {}

  void read(std::string_view text, bool in_text, int depth) {
    const std::string_view outer = text_;
    const size_t outer_at = at_;
    const bool outer_in_text = in_text_;
    text_ = text;
    at_ = 0;
    in_text_ = in_text;
    while (at_ < text_.size() && steps_.take()) next(depth);
    text_ = outer;
    at_ = outer_at;
    in_text_ = outer_in_text;
  }

  Tokens take() { return std::move(tokens_); }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::string_view rest() const { return text_.substr(at_); }

  void push(TokenType type, std::string_view text) {
    tokens_.list.push_back({type, std::string(text), space_, in_text_});
    space_ = false;
    if (text == "(" || text == "[" || text == "\\{") ++depth_;
    if (text == ")" || text == "]" || text == "\\}") --depth_;
  }

  void push_spelled(const Spelled& spelled) {
    if (spelled.text.empty()) {
      space_ = true;
      return;
    }
    push(spelled.type, spelled.text);
  }

  void next(int depth) {
    const char letter = peek();
    if (is_space(letter)) {
      space_ = true;
      ++at_;
    } else if (is_digit(letter) || (letter == '.' && is_digit(peek(1)))) {
      number();
    } else if (is_letter(letter)) {
      run();
    } else if (letter == '\\') {
      command(depth);
    } else if (static_cast<unsigned char>(letter) >= 0x80) {
      wide();
    } else {
      sign();
    }
  }

  // Length of the thousands separator at `from`, if exactly three digits follow it; else 0.
  size_t group_length(size_t from) {
    static constexpr std::string_view kSeparators[] = {
        "{, }", "{ , }", " {, }", " {,}",         "{,}\\!",       "{,}",      ",\\!\\!", ",\\!",
        "\\,",  "\\!",   "\\ ",   "\xe2\x80\xaf", "\xe2\x80\x89", "\xc2\xa0", ",",       " "};
    for (const std::string_view separator : kSeparators) {
      if (text_.substr(from, separator.size()) != separator) continue;
      size_t digits = from + separator.size();
      // A space may follow the separator: "11,\! 111" is typeset as 11,111.
      if (separator.size() > 1 && digits < text_.size() && text_[digits] == ' ') ++digits;
      for (int place = 0; place < 3; ++place)
        if (digits + static_cast<size_t>(place) >= text_.size() ||
            !is_digit(text_[digits + static_cast<size_t>(place)]))
          return 0;
      if (digits + 3 < text_.size() && is_digit(text_[digits + 3])) return 0;
      if (separator == "," && (!spelling_.commas_group_digits || depth_ > 0)) return 0;
      if (separator == " " && depth_ > 0) return 0;
      if (separator == ",") tokens_.has_grouping_comma = true;
      return digits - from;
    }
    return 0;
  }

  void number() {
    std::string digits;
    const auto take_digits = [&] {
      while (is_digit(peek())) digits += text_[at_++];
    };
    take_digits();
    if (!digits.empty() && digits.size() <= 3 && digits[0] != '0')
      for (size_t length; (length = group_length(at_)) > 0;) {
        at_ += length;
        take_digits();
      }
    const bool point = peek() == '.' && is_digit(peek(1));
    const bool comma = peek() == ',' && is_digit(peek(1)) && depth_ == 0;
    if (comma) tokens_.may_have_comma_point = true;
    if (point || (comma && spelling_.comma_is_point)) {
      if (digits.empty()) digits = "0";
      digits += '.';
      ++at_;
      take_digits();
    } else if (rest().starts_with(".\\overline") || rest().starts_with(".\\dot{")) {
      digits += '.';
      ++at_;
    } else if (peek() == '.' && !is_letter(peek(1)) && peek(1) != '\\') {
      ++at_;  // the point ends a sentence, or "5." means 5
    }
    repeat_last(digits);
    const size_t sign = peek(1) == '-' || peek(1) == '+' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      digits += 'e';
      ++at_;
      if (sign > 0 && text_[at_++] == '-') digits += '-';
      take_digits();
    }
    push(TokenType::Number, digits);
  }

  // The last digit before an ellipsis repeats: 0.1666...
  void repeat_last(std::string& digits) {
    const size_t point = digits.find('.');
    const bool goes_on = rest().starts_with("...") || rest().starts_with("\\ldots") ||
                         rest().starts_with("\\dots") || rest().starts_with("\xe2\x80\xa6");
    if (!goes_on || point == std::string::npos || digits.size() - point < 3 ||
        digits.back() != digits[digits.size() - 2])
      return;
    const char last = digits.back();
    while (digits.back() == last) digits.pop_back();
    digits += '|';
    digits += last;
    at_ += peek() == '.' || peek() != '\\' ? 3 : rest().starts_with("\\ldots") ? 6 : 5;
  }

  void run() {
    const size_t begin = at_;
    while (is_letter(peek())) ++at_;
    std::string_view letters = text_.substr(begin, at_ - begin);
    for (const std::string_view word : {"and", "or"})  // a word without a space before it: 1orx=2
      if (letters.size() > word.size() && letters.starts_with(word) && !space_ &&
          behind_operand()) {
        at_ = begin + word.size();
        letters = word;
      }
    if (letters.size() == 1) {
      push(TokenType::Letter, letters);
    } else if (const Spelled* spelled = spelled_word(letters)) {
      push_spelled(*spelled);
    } else {
      push(TokenType::Word, letters);
    }
  }

  bool behind_operand() const {
    return !tokens_.list.empty() &&
           (tokens_.list.back().type == TokenType::Number || tokens_.list.back().text == ")");
  }

  // The text in the braces at `at_`, which moves behind them; empty when there are none.
  std::string_view braced() {
    while (is_space(peek())) ++at_;
    if (peek() != '{') return {};
    const size_t begin = ++at_;
    int open = 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '{') {
        ++open;
      } else if (text_[at_] == '}' && --open == 0) {
        return text_.substr(begin, at_++ - begin);
      }
    }
    at_ = text_.size();
    return text_.substr(std::min(begin, text_.size()));
  }

  void command(int depth) {
    ++at_;
    const size_t begin = at_;
    if (!is_letter(peek())) {
      const char letter = peek();
      if (at_ < text_.size()) ++at_;
      return escaped(letter);
    }
    while (is_letter(peek())) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (is_text_command(name)) return text_command(depth);
    if (is_dropped_with_argument(name)) {
      braced();
      space_ = true;
    } else if (name == "begin" || name == "end") {
      push(TokenType::Sign, std::string(name) + " " + std::string(braced()));
    } else if (name == "left" || name == "right") {
      if (peek() == '.') ++at_;  // an empty delimiter, as in \left.
    } else if (name == "not") {
      negated();
    } else if (name == "overline" || name == "dot") {
      repeating(name);
    } else if (const Spelled* spelled = spelled_command(name)) {
      push_spelled(*spelled);
    } else if (const Spelled* word = spelled_word(name);
               word && word->type == TokenType::Function) {
      push_spelled(*word);
    } else if (name.starts_with("quad") || name.starts_with("qquad")) {  // \quadx without a space
      at_ = begin + name.find("quad") + 4;
      space_ = true;
    } else {
      push(TokenType::Unknown, name);
    }
  }

  void text_command(int depth) {
    while (is_space(peek())) ++at_;
    if (peek() != '{') return;  // a command without braces: \rm, or \text alone
    const std::string_view inner = braced();
    space_ = space_ || (!inner.empty() && is_space(inner.front()));
    if (depth < kMaxTextDepth) read(inner, true, depth + 1);
    if (!inner.empty() && is_space(inner.back())) space_ = true;
  }

  void negated() {
    while (is_space(peek())) ++at_;
    if (peek() == '=') {
      ++at_;
      push(TokenType::Sign, "!=");
    } else if (rest().starts_with("\\in")) {
      at_ += 3;
      push(TokenType::Sign, "notin");
    } else {
      push(TokenType::Unknown, "not");
    }
  }

  // The digits under a bar or a dot repeat: 0.1\overline{6}, 0.\dot{3}.
  void repeating(std::string_view name) {
    const bool behind_digit = at_ > name.size() + 1 && (is_digit(text_[at_ - name.size() - 2]) ||
                                                        text_[at_ - name.size() - 2] == '.');
    if (!behind_digit || tokens_.list.empty() || tokens_.list.back().type != TokenType::Number)
      return;  // above letters it is only decoration: \overline{AB}
    const std::string_view digits = braced();
    std::string& number = tokens_.list.back().text;
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit) ||
        number.find_first_of("e|") != std::string::npos) {
      push(TokenType::Unknown, name);
      return;
    }
    if (number.find('.') == std::string::npos) number += '.';
    number += '|';
    number += digits;
  }

  void escaped(char letter) {
    switch (letter) {
      case '{':
      case '}':
        push(TokenType::Sign, letter == '{' ? "\\{" : "\\}");
        break;
      case '%':
      case '$':
      case '#':
      case '&':
        push(TokenType::Sign, std::string(1, letter));
        break;
      case '\\':
        // In doubly escaped JSON \\frac means \frac; elsewhere \\ ends a row of a matrix.
        if (is_letter(peek()) && !inside_matrix()) {
          --at_;
        } else {
          push(TokenType::Sign, "newline");
        }
        break;
      case '|':
      case '-':
        push(TokenType::Sign, std::string(1, letter));
        break;
      default:
        space_ = true;  // spaces and delimiters: "\,", "\;", "\!", "\(", "\ "
    }
  }

  bool inside_matrix() const {
    for (auto token = tokens_.list.rbegin(); token != tokens_.list.rend(); ++token) {
      if (token->text.starts_with("end ")) return false;
      if (token->text.starts_with("begin ")) return true;
    }
    return false;
  }

  // Superscripts become powers: "⁸" and "⁻¹" as ^{8} and ^{-1}. A single "²" or "³" becomes a sign
  // of its own, which units use too.
  bool raised() {
    std::string exponent;
    size_t end = at_;
    size_t length = 0;
    while (const char letter = raised_character(text_.substr(end), length)) {
      exponent += letter;
      end += length;
    }
    if (exponent.empty() || exponent == "2" || exponent == "3") return false;
    at_ = end;
    push(TokenType::Sign, "^");
    push(TokenType::Sign, "{");
    for (size_t at = 0; at < exponent.size();) {
      size_t digits = at;
      while (digits < exponent.size() && is_digit(exponent[digits])) ++digits;
      const std::string_view all = exponent;
      if (digits > at) {
        push(TokenType::Number, all.substr(at, digits - at));
        at = digits;
      } else {
        push(is_letter(exponent[at]) ? TokenType::Letter : TokenType::Sign, all.substr(at, 1));
        ++at;
      }
    }
    push(TokenType::Sign, "}");
    return true;
  }

  // Number of bytes of the character at `at_`.
  size_t character_length() const {
    size_t length = 1;
    while (at_ + length < text_.size() && (text_[at_ + length] & '\xc0') == '\x80') ++length;
    return length;
  }

  // Reads a run of Russian letters: a word, or a Russian letter typed in place of x or y.
  bool russian() {
    const size_t begin = at_;
    while (peek() == '\xd0' || peek() == '\xd1') at_ += character_length();
    if (at_ == begin) return false;
    const std::string_view run = text_.substr(begin, at_ - begin);
    if (run == "х" || run == "у") {
      push(TokenType::Letter, run == "х" ? "x" : "y");
    } else {
      push(TokenType::Word, run == "и" ? "and" : run == "или" ? "or" : run);
    }
    return true;
  }

  void wide() {
    size_t length = 0;
    if (raised() || russian()) return;
    if (const Spelled* spelled = spelled_character(rest(), length)) {
      at_ += length;
      push_spelled(*spelled);
      return;
    }
    length = character_length();
    const std::string_view character = text_.substr(at_, length);
    const auto joins = [&](const Token& last) {
      return last.type == TokenType::Word && !space_ && is_foreign(last.text) &&
             circled_number(last.text) + circled_number(character) == 0;
    };
    // Adjoining characters of other scripts are joined to one word.
    if (!tokens_.list.empty() && joins(tokens_.list.back()))
      tokens_.list.back().text += character;
    else
      push(TokenType::Word, character);
    at_ += length;
  }

  void sign() {
    static constexpr std::string_view kLong[] = {"<=>", "<=", ">=", "!=", "=>",
                                                 "->",  "**", "==", "~=", "+/-"};
    static constexpr std::string_view kNames[] = {"implies", "<=", ">=", "!=",     "implies",
                                                  "implies", "^",  "=",  "approx", "pm"};
    for (size_t index = 0; index < std::size(kLong); ++index)
      if (rest().starts_with(kLong[index])) {
        at_ += kLong[index].size();
        return push(TokenType::Sign, kNames[index]);
      }
    const char letter = text_[at_++];
    if (letter == '~' || letter == '"' || letter == '`') {
      space_ = true;
    } else {
      push(TokenType::Sign, std::string(1, letter));
    }
  }

  const Spelling& spelling_;
  Steps& steps_;
  Tokens tokens_;
  std::string_view text_;
  size_t at_ = 0;
  bool in_text_ = false;
  bool space_ = false;
  int depth_ = 0;  // depth of brackets, where a comma separates elements
};

bool is(const Token& token, std::string_view sign) {
  return token.type == TokenType::Sign && token.text == sign;
}

bool ends_sentence(const Token& token) {
  return is(token, ".") || is(token, ",") || is(token, ";") || is(token, ":");
}

// Drops the dollar signs around formulas. When their number is odd, the ones beside a number are
// currency signs and stay.
void drop_math_dollars(std::vector<Token>& tokens) {
  const auto dollars = std::count_if(tokens.begin(), tokens.end(),
                                     [](const Token& token) { return is(token, "$"); });
  if (dollars == 0) return;
  std::vector<Token> kept;
  for (size_t index = 0; index < tokens.size(); ++index) {
    const bool before_number =
        index + 1 < tokens.size() && tokens[index + 1].type == TokenType::Number;
    const bool behind_number = index > 0 && tokens[index - 1].type == TokenType::Number;
    if (is(tokens[index], "$") && !(dollars % 2 == 1 && (before_number || behind_number))) continue;
    kept.push_back(tokens[index]);
  }
  tokens = std::move(kept);
}

// True for a token that ends the operands of \over: a bracket, a comma, a relation.
bool ends_over(const Token& token) {
  static constexpr std::string_view kEnds[] = {
      "(",  ")", "[",  "]",  "\\{", "\\}",     ",", ";", "=",  "<",
      "<=", ">", ">=", "!=", "in",  "newline", "&", "$", "or", "and"};
  return std::find(std::begin(kEnds), std::end(kEnds), token.text) != std::end(kEnds);
}

// Rewrites {a \over b} to \frac{a}{b}: in the same braces, the tokens before \over are the
// numerator and the tokens behind it the denominator.
void put_over(std::vector<Token>& tokens) {
  constexpr int kMostOvers = 16;  // further ones are left, and not understood
  for (int count = 0; count < kMostOvers; ++count) {
    const auto over = std::find_if(tokens.begin(), tokens.end(),
                                   [](const Token& token) { return is(token, "over"); });
    if (over == tokens.end()) return;
    auto begin = over;
    for (int open = 0; begin != tokens.begin(); --begin) {
      const Token& before = *std::prev(begin);
      open += is(before, "}");
      if (open == 0 && (is(before, "{") || ends_over(before))) break;
      open -= is(before, "{");
    }
    auto end = std::next(over);
    for (int open = 0; end != tokens.end(); ++end) {
      open += is(*end, "{");
      if (open == 0 && (is(*end, "}") || ends_over(*end))) break;
      open -= is(*end, "}");
    }
    const auto sign = [](std::string_view text) {
      return Token{TokenType::Sign, std::string(text)};
    };
    std::vector<Token> fraction = {sign("frac"), sign("{")};
    fraction.insert(fraction.end(), begin, over);
    fraction.push_back(sign("}"));
    fraction.push_back(sign("{"));
    fraction.insert(fraction.end(), std::next(over), end);
    fraction.push_back(sign("}"));
    const bool braced = begin != tokens.begin() && end != tokens.end() &&
                        is(*std::prev(begin), "{") && is(*end, "}");
    if (braced) {
      --begin;
      ++end;
    }
    const auto at = tokens.erase(begin, end);
    tokens.insert(at, fraction.begin(), fraction.end());
  }
}

void drop_ends(std::vector<Token>& tokens) {
  while (!tokens.empty() && (ends_sentence(tokens.back()) || is(tokens.back(), "newline")))
    tokens.pop_back();
  // Bold in Markdown, **42**, arrives as two tokens "^".
  while (tokens.size() >= 2 && is(tokens.front(), "^") && is(tokens.back(), "^")) {
    tokens.pop_back();
    tokens.erase(tokens.begin());
  }
  size_t first = 0;
  while (first < tokens.size() && (ends_sentence(tokens[first]) || is(tokens[first], "implies")))
    ++first;
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace

Tokens tokenize(std::string_view text, const Spelling& spelling, Steps& steps) {
  Tokenizer tokenizer(spelling, steps);
  tokenizer.read(text, false, 0);
  Tokens tokens = tokenizer.take();
  drop_math_dollars(tokens.list);
  put_over(tokens.list);
  drop_ends(tokens.list);
  return tokens;
}

}  // namespace convoy::answers
