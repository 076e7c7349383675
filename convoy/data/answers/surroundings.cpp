// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/surroundings.h"

#include <algorithm>
#include <span>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
bool introduces_condition(std::string_view low) {
  return is_listed(" where for if when with assuming ", low);
}

namespace {

bool introduces_reason(std::string_view low) { return is_listed(" since because ", low); }

// Words of a condition that do not change it: "for every n" is "for all n".
bool is_filler(const Token& token) {
  return token.type == TokenType::Word &&
         is_listed(
             " an all any are be been by each every is of on some such that the then these this to "
             "value values we case cases number numbers it its ",
             lowered(token.text));
}

bool is_domain(std::string_view low) {
  return low.starts_with("integer") || low.starts_with("real") || low.starts_with("natural");
}

bool is_comparison(const Token& token) {
  return token.type == TokenType::Sign &&
         is_listed(" = equiv != < <= > >= approx notin ", token.text);
}

// True for words that tell a property of a number.
bool is_property(const Token& token) {
  return token.type == TokenType::Word &&
         is_listed(
             " even odd prime composite positive negative nonnegative nonpositive nonzero rational "
             "irrational coprime ",
             lowered(token.text));
}

// The parts of a domain's condition that bound the symbols further: "n>2" for "integers n > 2".
std::string bounds_of(std::span<const Token> tokens) {
  std::string all;
  size_t begin = 0;
  for (size_t end = 0; end <= tokens.size(); ++end) {
    if (end < tokens.size() && !is_sign(tokens[end], ",") && lowered(tokens[end].text) != "and")
      continue;
    std::string part;
    bool bounds = false;
    for (const Token& token : tokens.subspan(begin, end - begin)) {
      const std::string low = lowered(token.text);
      bounds |= is_comparison(token) || token.type == TokenType::Number ||
                (is_property(token) && low != "positive");
      if (!is_filler(token) && !is_domain(low) && low != "positive") part += low;
    }
    if (bounds) all += "," + part;
    begin = end + 1;
  }
  return all;
}

// A condition in a canonical spelling: "k:Z" for "k in Z" and "k is an integer", with its bounds:
// "k:Z,k>2"; any other condition as its tokens.
std::string condition_of(std::span<const Token> tokens) {
  std::string symbols;
  std::string domain;
  std::string all;
  bool is_positive = false;
  for (const Token& token : tokens) {
    const std::string low = lowered(token.text);
    if (token.type == TokenType::Letter && token.text != "infinity" &&
        (symbols.empty() || symbols.find(token.text) == std::string::npos))
      symbols += token.text;
    if (low.starts_with("integer") || low == "set z") domain = "Z";
    if (low.starts_with("real") || low == "set r") domain = "R";
    if (low.starts_with("natural") || low == "set n") domain = "N";
    is_positive |= low == "positive";
    if (!is_filler(token)) all += low;
  }
  if (domain.empty())
    for (size_t at = 0; at + 1 < tokens.size(); ++at)
      if (tokens[at].text == "mathbb") {
        const Token& name =
            tokens[at + (is_sign(tokens[at + 1], "{") && at + 2 < tokens.size() ? 2 : 1)];
        symbols = symbols.substr(0, symbols.rfind(name.text));
        domain = name.text;
        for (const Token& token : tokens.subspan(at)) {
          if (is_sign(token, ",")) break;
          if (is_sign(token, "+") || is_sign(token, "*") || is_sign(token, "-"))
            domain += token.text;
        }
      }
  if (domain.empty()) return all;
  if (is_positive && !domain.ends_with('+')) domain += '+';
  return symbols + ":" + domain + bounds_of(tokens);
}

// True for the tokens in brackets behind an answer that restrict it: "k in Z", "n even", "x > 2".
bool restricts(std::span<const Token> tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return is_sign(token, "in") || is_comparison(token) || is_property(token) ||
           (token.type == TokenType::Word && introduces_condition(lowered(token.text)));
  });
}

// True for the last token of an answer, behind which a condition may stand in brackets. P(X > 2) is
// an application, and "or (x > 2)" a part of the answer.
bool ends_value(const Token& token, bool space_behind) {
  switch (token.type) {
    case TokenType::Number:
      return true;
    case TokenType::Letter:
      return space_behind;
    case TokenType::Word:
      return space_behind && !is_listed(" and or but to ", lowered(token.text));
    case TokenType::Sign:
      return is_listed(" ) ] } \\} ! % ' ^2 ^3 degree ", token.text);
    default:
      return false;
  }
}

// Moves a condition in brackets at the end, "(k in Z)" or "(n even)", to `conditions`.
void take_bracketed(std::vector<Token>& tokens, std::vector<std::string>& conditions) {
  if (tokens.empty() || (!is_sign(tokens.back(), ")") && !is_sign(tokens.back(), "]"))) return;
  int depth = 0;
  size_t open = tokens.size();
  do {
    --open;
    depth += is_sign(tokens[open], ")") || is_sign(tokens[open], "]");
    depth -= is_sign(tokens[open], "(") || is_sign(tokens[open], "[");
  } while (depth > 0 && open > 0);
  if (depth != 0 || open == 0) return;
  const std::span<const Token> inside(tokens.begin() + static_cast<std::ptrdiff_t>(open) + 1,
                                      tokens.end() - 1);
  if (!restricts(inside)) return;
  const bool is_membership = std::any_of(inside.begin(), inside.end(),
                                         [](const Token& token) { return is_sign(token, "in"); });
  if (!is_membership && !ends_value(tokens[open - 1], tokens[open].space_before)) return;
  conditions.push_back((is_membership ? "" : std::string(1, kNeeded)) + condition_of(inside));
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(open), tokens.end());
}

// The condition behind a word such as "if". A further case, "5 if n is even, 3 if n is odd", is
// part of the answer.
std::string told_condition(std::span<const Token> tokens) {
  const bool has_further_case = std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.type == TokenType::Word &&
           is_listed(" if when otherwise else ", lowered(token.text));
  });
  return (has_further_case ? std::string(1, kNeeded) : "") + condition_of(tokens);
}

// Rewrites (mod 4) to \pmod{4}.
void name_moduli(std::vector<Token>& tokens) {
  for (size_t at = 0; at + 2 < tokens.size(); ++at) {
    const bool opens = is_sign(tokens[at], "(") || is_sign(tokens[at], "[");
    if (!opens || !is_sign(tokens[at + 1], "mod")) continue;
    int depth = 1;
    size_t end = at + 2;
    for (; end < tokens.size(); ++end) {
      depth += is_sign(tokens[end], "(") || is_sign(tokens[end], "[");
      depth -= is_sign(tokens[end], ")") || is_sign(tokens[end], "]");
      if (depth == 0) break;
    }
    if (end == tokens.size()) return;
    tokens[at].text = "pmod";
    tokens[at + 1].text = "{";
    tokens[end].text = "}";
  }
}

}  // namespace

std::vector<Token> without_surroundings(std::vector<Token> tokens,
                                        std::vector<std::string>& conditions) {
  name_moduli(tokens);
  take_bracketed(tokens, conditions);
  int depth = 0;
  size_t begin = 0;
  for (size_t index = 0; index < tokens.size(); ++index) {
    const Token& token = tokens[index];
    if (token.type == TokenType::Sign) {
      if (token.text == "(" || token.text == "[" || token.text == "{" || token.text == "\\{" ||
          token.text.starts_with("begin "))
        ++depth;
      if (token.text == ")" || token.text == "]" || token.text == "}" || token.text == "\\}" ||
          token.text.starts_with("end "))
        --depth;
      if (depth == 0 && token.text == "implies" && index + 1 < tokens.size()) begin = index + 1;
    }
    if (token.type != TokenType::Word || depth != 0 || index <= begin) continue;
    const std::string low = lowered(token.text);
    const bool restricts_answer = introduces_condition(low);
    if (!restricts_answer && !introduces_reason(low)) continue;
    if (restricts_answer)
      conditions.push_back(told_condition(std::span(tokens).subspan(index + 1)));
    tokens.resize(index);
    break;
  }
  static constexpr std::string_view kFillers[] = {"about",  "approximately", "exactly", "around",
                                                  "total",  "only",          "is",      "equals",
                                                  "answer", "the",           "are",     "roughly"};
  while (begin + 1 < tokens.size() && tokens[begin].type == TokenType::Word &&
         std::find(std::begin(kFillers), std::end(kFillers), lowered(tokens[begin].text)) !=
             std::end(kFillers))
    ++begin;
  // Drops the sign at the start: "=5" and ": 5".
  while (begin + 1 < tokens.size() && tokens[begin].type == TokenType::Sign &&
         (tokens[begin].text == "=" || tokens[begin].text == "approx" || tokens[begin].text == ":"))
    ++begin;
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begin));
  while (!tokens.empty() && tokens.back().type == TokenType::Sign &&
         (tokens.back().text == "," || tokens.back().text == "." || tokens.back().text == ";"))
    tokens.pop_back();
  return tokens;
}

}  // namespace convoy::answers
