// SPDX-License-Identifier: Apache-2.0
//
// The recursive descent behind parse_answer: structures (parser.cpp), and expressions below them
// (expression_parser.cpp, function_parser.cpp). After a failure the parser reads nothing further,
// so no caller has to check.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"
#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

class Parser {
 public:
  Parser(std::vector<Token> tokens, bool wide_divisor, Steps& steps)
      : tokens_(std::move(tokens)), wide_divisor_(wide_divisor), steps_(steps) {}

  Node answer();
  // Conditions on the answer's symbols, each in a canonical spelling: "k:Z", "k>=0".
  const std::vector<std::string>& conditions() const { return conditions_; }
  bool failed() const { return failed_; }
  bool divides_product() const { return divides_product_; }

 private:
  class Deeper;

  // Defined in parser.cpp:
  std::vector<Node> elements(bool inside);
  void element(std::vector<Node>& into);
  void add_with_signs(Node node, std::vector<Node>& into);
  Node relation();
  Node congruence(Node told, Node divisor);
  void share_modulus(std::vector<Node>& all);
  Node ratio();
  bool at_half_of_day() const;
  std::string half_of_day();
  Node set_expression();
  Node tuple(char open);
  Node brackets(char open);
  Node braces();
  Node environment(std::string_view name);
  Node matrix_rows(bool with_columns);
  Node case_rows();
  Node named_set();
  bool take_separator(bool& semicolon);
  std::optional<Comparison> take_comparison();

  // Defined in expression_parser.cpp and function_parser.cpp:
  Node sum();
  Node product();
  Node quotient_divisor();
  void append_factor(std::vector<Node>& factors);
  Node factor();
  Node power();
  Node postfix(Node base);
  std::string_view magnitude() const;
  Node atom();
  Node sign_atom();
  Node number();
  Node money();
  Node symbol();
  Node call();
  Node call_argument();
  Node fraction();
  Node series(char sign);
  Node root();
  Node between(std::string_view close, std::string_view function);
  Node braced_or_single();
  Node exponent();
  bool joins_quantity() const;
  bool starts_factor() const;
  bool starts_inverse_unit() const;
  bool at_bracket() const;
  bool behind_bracket() const;
  bool starts_plain_mixed(const std::vector<Node>& factors) const;
  bool at_unit() const;
  bool starts_application() const;
  void split_word();

  // Access to the tokens.
  bool at_end() const { return failed_ || at_ >= tokens_.size(); }
  const Token& token(size_t ahead = 0) const {
    static const Token kNone{TokenType::Unknown, "", false, false};
    return failed_ || at_ + ahead >= tokens_.size() ? kNone : tokens_[at_ + ahead];
  }
  bool is(std::string_view sign, size_t ahead = 0) const {
    const Token& candidate = token(ahead);
    return candidate.type == TokenType::Sign && candidate.text == sign;
  }
  bool is_word(std::string_view word, size_t ahead = 0) const;
  bool take(std::string_view sign) {
    if (!is(sign)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) fail();
  }
  Node fail() {
    failed_ = true;
    return {};
  }

  std::vector<Token> tokens_;
  bool wide_divisor_;
  Steps& steps_;
  size_t at_ = 0;
  int depth_ = 0;
  int bars_open_ = 0;  // number of open |, which looks the same at both ends
  bool said_or_ = false;
  bool said_and_ = false;
  std::vector<std::string> conditions_;
  bool failed_ = false;
  bool divides_product_ = false;
};

// Counts the nesting of brackets; fails when it is too deep.
class Parser::Deeper {
 public:
  explicit Deeper(Parser& parser) : parser_(parser) {
    constexpr int kDeepest = 60;
    if (++parser_.depth_ > kDeepest) parser_.fail();
  }
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Parser& parser_;
};

}  // namespace convoy::answers
