// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/surroundings.h"

#include <algorithm>
#include <span>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

// A condition in a canonical spelling: "k:Z" for "k in Z" and "k is an integer"; any other
// condition as its tokens.
std::string condition_of(std::span<const Token> tokens) {
  std::string symbols;
  std::string domain;
  std::string all;
  for (const Token& token : tokens) {
    const std::string low = lowered(token.text);
    if (token.type == TokenType::Letter && token.text != "infinity") symbols += token.text;
    if (low.starts_with("integer") || low == "set z") domain = "Z";
    if (low.starts_with("real") || low == "set r") domain = "R";
    if (low.starts_with("natural") || low == "set n") domain = "N";
    if (low == "positive") domain += '+';
    if (token.type != TokenType::Word || low.size() > 3) all += low;
  }
  if (domain.empty())
    for (size_t at = 0; at + 1 < tokens.size(); ++at)
      if (tokens[at].text == "mathbb") {
        const Token& name =
            tokens[at + (is_sign(tokens[at + 1], "{") && at + 2 < tokens.size() ? 2 : 1)];
        symbols = symbols.substr(0, symbols.rfind(name.text));
        domain = name.text;
        for (const Token& token : tokens.subspan(at))
          if (is_sign(token, "+") || is_sign(token, "*") || is_sign(token, "-"))
            domain += token.text;
      }
  return domain.empty() ? all : symbols + ":" + domain;
}

// Moves a membership in brackets at the end, "(k in Z)", to `conditions`.
void take_membership(std::vector<Token>& tokens, std::vector<std::string>& conditions) {
  if (tokens.empty() || !is_sign(tokens.back(), ")")) return;
  const auto open = std::find_if(tokens.rbegin(), tokens.rend(), [](const Token& token) {
                      return is_sign(token, "(");
                    }).base();
  if (open == tokens.begin() || open - 1 == tokens.begin()) return;
  if (std::none_of(open, tokens.end(), [](const Token& token) { return is_sign(token, "in"); }))
    return;
  conditions.push_back(condition_of({open, tokens.end() - 1}));
  tokens.erase(open - 1, tokens.end());
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
  take_membership(tokens, conditions);
  int depth = 0;
  size_t begin = 0;
  for (size_t index = 0; index < tokens.size(); ++index) {
    const Token& token = tokens[index];
    if (token.type == TokenType::Sign) {
      if (token.text == "(" || token.text == "[" || token.text == "{" || token.text == "\\{")
        ++depth;
      if (token.text == ")" || token.text == "]" || token.text == "}" || token.text == "\\}")
        --depth;
      if (depth == 0 && token.text == "implies" && index + 1 < tokens.size()) begin = index + 1;
    }
    static constexpr std::string_view kConditions[] = {"where", "for",   "if",      "when",
                                                       "with",  "since", "because", "assuming"};
    if (token.type == TokenType::Word && depth == 0 && index > begin &&
        std::find(std::begin(kConditions), std::end(kConditions), lowered(token.text)) !=
            std::end(kConditions)) {
      const std::string low = lowered(token.text);
      if (low != "since" && low != "because")
        conditions.push_back(condition_of(std::span(tokens).subspan(index + 1)));
      tokens.resize(index);
      break;
    }
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
