// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/equivalence.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "convoy/data/answers/choice.h"
#include "convoy/data/answers/comparer.h"
#include "convoy/data/answers/dropped_marks.h"
#include "convoy/data/answers/evaluated_node.h"
#include "convoy/data/answers/extraction.h"
#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/narrow.h"
#include "convoy/data/answers/number_words.h"
#include "convoy/data/answers/options.h"
#include "convoy/data/answers/parameters.h"
#include "convoy/data/answers/parser.h"
#include "convoy/data/answers/phrases.h"
#include "convoy/data/answers/tokens.h"

namespace convoy::answers {
namespace {

constexpr size_t kMostTokens = 2000;  // a longer answer is compared by its tokens only
constexpr size_t kShortPhrase = 4;    // words: a name or a verdict, not a proof

// An answer and its possible readings as trees, the likeliest reading first.
struct Reading {
  std::vector<Token> tokens;
  std::optional<std::string> phrase;
  std::vector<Node> nodes;
  std::vector<std::string> conditions = {};  // conditions on the symbols, such as "k:Z"
  // True for words that express no number or set. Their trees are at best products of the words'
  // letters.
  bool is_spoken = false;
};

void add_readings(std::string_view text, const Spelling& spelling, Reading& reading, Steps& steps) {
  std::vector<Node>& nodes = reading.nodes;
  const Tokens tokens = tokenize(text, spelling, steps);
  Parsed parsed = parse_answer(tokens.list, false, steps);
  if (reading.conditions.empty()) reading.conditions = std::move(parsed.conditions);
  if (parsed.node) nodes.push_back(std::move(*parsed.node));
  if (parsed.divides_product) {
    parsed = parse_answer(tokens.list, true, steps);
    if (parsed.node) nodes.push_back(std::move(*parsed.node));
  }
}

// True for "25m^2": the letters may be a unit (an area) or a product.
bool ends_in_loose_unit(const std::vector<Token>& tokens) {
  return tokens.size() >= 2 && tokens[0].type == TokenType::Number &&
         tokens[1].type == TokenType::Letter && unit_named(tokens[1].text) &&
         std::all_of(tokens.begin() + 2, tokens.end(), [](const Token& token) {
           return token.text == "^" || token.text == "2" || token.text == "3" ||
                  token.text == "^2" || token.text == "^3" || token.text == "{" ||
                  token.text == "}";
         });
}

Reading read(std::string_view given, Steps& steps) {
  Reading reading;
  const std::string text = narrowed(given);
  Tokens tokens = tokenize(text, {}, steps);
  reading.tokens = std::move(tokens.list);
  if (reading.tokens.size() > kMostTokens) return reading;
  reading.phrase = phrase_of(reading.tokens);
  if (reading.phrase)
    if (std::optional<Node> node = phrase_node(*reading.phrase)) reading.nodes.push_back(*node);
  if (std::optional<std::vector<Token>> digits = in_digits(reading.tokens))
    if (Parsed parsed = parse_answer(std::move(*digits), false, steps); parsed.node)
      reading.nodes.push_back(std::move(*parsed.node));
  reading.is_spoken = reading.phrase && reading.nodes.empty();
  add_readings(text, {}, reading, steps);
  if (tokens.has_grouping_comma) add_readings(text, {.commas_group_digits = false}, reading, steps);
  if (tokens.may_have_comma_point) add_readings(text, {.comma_is_point = true}, reading, steps);
  if (ends_in_loose_unit(reading.tokens)) {
    std::vector<Token> upright = reading.tokens;
    for (Token& token : upright)
      if (token.type == TokenType::Letter) token.from_text = true;
    if (Parsed parsed = parse_answer(std::move(upright), false, steps); parsed.node)
      reading.nodes.push_back(std::move(*parsed.node));
  }
  return reading;
}

Node lowered_symbols(Node node) {
  if (node.kind == Kind::Symbol) node.name = lowered(node.name);
  for (Node& child : node.children) child = lowered_symbols(std::move(child));
  return node;
}

// x and X are one symbol where nothing in either answer sets them apart.
bool may_ignore_case(const Node& a, const Node& b) {
  std::set<std::string> symbols;
  collect_symbols(a, symbols);
  collect_symbols(b, symbols);
  std::set<std::string> in_one;
  collect_symbols(a, in_one);
  const auto collides = [](const std::set<std::string>& names) {
    std::set<std::string> low;
    for (const std::string& name : names)
      if (!low.insert(lowered(name)).second) return true;
    return false;
  };
  std::set<std::string> in_other;
  collect_symbols(b, in_other);
  return collides(symbols) && !collides(in_one) && !collides(in_other);
}

Verdict compare_nodes(const Node& gold, const Node& prediction, const CheckLimits& limits,
                      Steps& steps) {
  const Verdict verdict = Comparer(limits, steps).equal(gold, prediction);
  if (verdict == Verdict::Yes || !may_ignore_case(gold, prediction)) return verdict;
  return either(verdict,
                Comparer(limits, steps).equal(lowered_symbols(gold), lowered_symbols(prediction)));
}

// True when two answers differ only in their numbers: "July 4" and "July 5".
bool differ_in_numbers(const std::vector<Token>& gold, const std::vector<Token>& prediction) {
  return gold.size() == prediction.size() &&
         std::equal(gold.begin(), gold.end(), prediction.begin(),
                    [](const Token& a, const Token& b) {
                      return a.type == b.type && (a.type == TokenType::Number || a.text == b.text);
                    });
}

bool is_foreign_word(const Token& token) {
  return token.type == TokenType::Word && is_foreign(token.text);
}

// True when the tree contains a word of another script. Such a word is no unit, so its meaning is
// unknown.
bool holds_foreign_symbol(const Node& node) {
  return (node.kind == Kind::Symbol && is_foreign(node.name)) ||
         std::any_of(node.children.begin(), node.children.end(), holds_foreign_symbol);
}

bool holds_foreign_symbol(const Reading& side) {
  if (side.nodes.empty())
    return std::any_of(side.tokens.begin(), side.tokens.end(), is_foreign_word);
  return std::any_of(side.nodes.begin(), side.nodes.end(),
                     [](const Node& node) { return holds_foreign_symbol(node); });
}

Verdict compare_phrases(const Reading& gold, const Reading& prediction) {
  const auto is_short = [](const Reading& side) {
    return side.phrase && words_in(*side.phrase) <= kShortPhrase;
  };
  if (gold.phrase && prediction.phrase &&
      canonical_phrase(*gold.phrase) == canonical_phrase(*prediction.phrase))
    return Verdict::Yes;
  if (differ_in_numbers(gold.tokens, prediction.tokens)) return Verdict::No;
  const auto is_unknown_word = [](const Reading& side) {
    return side.phrase && std::any_of(side.tokens.begin(), side.tokens.end(), is_foreign_word) &&
           !is_canonical(canonical_phrase(*side.phrase));
  };
  if (is_unknown_word(gold) || is_unknown_word(prediction)) return Verdict::Unknown;
  const bool gold_is_clear = is_short(gold) || !gold.nodes.empty();
  const bool prediction_is_clear = is_short(prediction) || !prediction.nodes.empty();
  return gold_is_clear && prediction_is_clear ? Verdict::No : Verdict::Unknown;
}

// True when words cannot be compared with a formula. The letters of "xy" may be symbols of the
// formula; any other word was not understood.
bool is_unread_beside(const Reading& prediction, const Reading& gold) {
  if (!prediction.is_spoken || gold.is_spoken || gold.nodes.empty()) return false;
  std::set<std::string> symbols;
  for (const Node& node : gold.nodes) collect_symbols(node, symbols);
  std::set<std::string> letters;
  for (const Node& node : prediction.nodes) collect_symbols(node, letters);
  return letters.empty() ||
         !std::includes(symbols.begin(), symbols.end(), letters.begin(), letters.end());
}

// "none" may mean zero things as well as the empty set.
bool is_none_beside_zero(const Reading& a, const Reading& b) {
  const auto is_zero = [](const Node& node) {
    return node.kind == Kind::Number && node.name == "0";
  };
  return a.phrase && *a.phrase == "none" && std::any_of(b.nodes.begin(), b.nodes.end(), is_zero);
}

// True for the same letters in another order: ABC and CBA may be a product, a figure, or an order
// of the letters.
bool are_letters_in_two_orders(const Reading& a, const Reading& b) {
  constexpr size_t kShortest = 3;  // shorter: AB and BA are one segment
  const auto is_run = [](const Reading& side) {
    return side.tokens.size() == 1 && side.tokens[0].text.size() >= kShortest &&
           std::all_of(side.tokens[0].text.begin(), side.tokens[0].text.end(), is_upper);
  };
  return is_run(a) && is_run(b) &&
         std::is_permutation(a.tokens[0].text.begin(), a.tokens[0].text.end(),
                             b.tokens[0].text.begin(), b.tokens[0].text.end());
}

// The quantity that a fraction over a unit means: \frac{3}{m} as 3 m^{-1}.
std::optional<Node> over_unit(std::span<const Token> tokens, Steps& steps) {
  if (tokens.size() < 4 || !is_sign(tokens[0], "frac") || !is_sign(tokens[1], "{"))
    return std::nullopt;
  size_t close = 2;
  for (int depth = 1; close < tokens.size(); ++close) {
    depth += is_sign(tokens[close], "{") ? 1 : is_sign(tokens[close], "}") ? -1 : 0;
    if (depth == 0) break;
  }
  if (close + 2 >= tokens.size() || !is_sign(tokens[close + 1], "{") ||
      !is_sign(tokens.back(), "}"))
    return std::nullopt;
  const std::span<const Token> below = tokens.subspan(close + 2, tokens.size() - close - 3);
  size_t at = 0;
  const std::optional<MeasureUnit> unit = read_unit(below, at);
  if (!unit || !unit->known || at != below.size()) return std::nullopt;
  const std::optional<MeasureUnit> inverse = raised(*unit, -1);
  Parsed above =
      parse_answer({tokens.begin() + 2, tokens.begin() + static_cast<long>(close)}, false, steps);
  if (!inverse || !above.node) return std::nullopt;
  const bool is_measured = above.node->kind == Kind::Quantity && above.node->unit.known;
  const std::optional<MeasureUnit> whole =
      is_measured ? multiplied(above.node->unit, *inverse) : inverse;
  if (!whole) return std::nullopt;
  Node node =
      is_measured ? std::move(*above.node) : make_node(Kind::Quantity, {std::move(*above.node)});
  node.unit = *whole;
  return node;
}

// The answer as a quantity, with its letters read as units; empty when it is no quantity.
std::optional<Node> as_quantity(const Reading& side, Steps& steps) {
  std::vector<Token> upright = side.tokens;
  for (Token& token : upright)
    if (token.type == TokenType::Letter) token.from_text = true;
  if (std::optional<Node> quotient = over_unit(upright, steps)) return quotient;
  Parsed parsed = parse_answer(std::move(upright), false, steps);
  const bool is_measured =
      parsed.node && parsed.node->kind == Kind::Quantity && parsed.node->unit.known;
  return is_measured ? std::move(parsed.node) : std::nullopt;
}

// True when both answers are equal as quantities: 5 J and 5 N m, 3 m^{-1} and 3/m, or a bare number
// equals the one before a fraction of units. Otherwise one of them would be read as a product of
// letters.
bool may_be_one_quantity(const Reading& gold, const Reading& prediction, const CheckLimits& limits,
                         Steps& steps) {
  const std::optional<Node> wanted = as_quantity(gold, steps);
  const std::optional<Node> told = as_quantity(prediction, steps);
  const auto holds_fraction = [](const Reading& side) {
    return side.tokens.front().type == TokenType::Number && is_sign(side.tokens.back(), "}") &&
           std::any_of(side.tokens.begin(), side.tokens.end(),
                       [](const Token& token) { return is_sign(token, "frac"); });
  };
  if (wanted && told) return compare_nodes(*wanted, *told, limits, steps) == Verdict::Yes;
  // The unit \frac{m}{s} beside a bare number: 9.8 \frac{m}{s} and 9.8.
  if (wanted && holds_fraction(gold) && !prediction.nodes.empty())
    return compare_nodes(*wanted, prediction.nodes.front(), limits, steps) == Verdict::Yes;
  if (told && holds_fraction(prediction) && !gold.nodes.empty())
    return compare_nodes(gold.nodes.front(), *told, limits, steps) == Verdict::Yes;
  return false;
}

Verdict compare(const Reading& gold, const Reading& prediction, const CheckLimits& limits,
                Steps& steps) {
  if (gold.tokens.empty() || prediction.tokens.empty()) return Verdict::Unknown;
  if (gold.tokens == prediction.tokens) return Verdict::Yes;
  if (are_letters_in_two_orders(gold, prediction)) return Verdict::Unknown;
  if (const std::optional<Verdict> verdict = compare_choices(gold.tokens, prediction.tokens))
    return *verdict;
  if (gold.phrase != prediction.phrase && prediction.phrase && declines(*prediction.phrase))
    return Verdict::Unknown;
  if (is_unread_beside(prediction, gold)) return Verdict::Unknown;
  std::optional<Verdict> found;
  for (const Node& wanted : gold.nodes)
    for (const Node& told : prediction.nodes) {
      const Verdict verdict =
          with_parameters({wanted, gold.conditions}, {told, prediction.conditions},
                          compare_nodes(wanted, told, limits, steps), limits, steps);
      if (verdict == Verdict::Yes) return verdict;
      if (!found) found = verdict;  // verdict of the likeliest reading
    }
  if (found == Verdict::No && may_be_one_quantity(gold, prediction, limits, steps))
    return Verdict::Unknown;
  if (found == Verdict::No &&
      (is_none_beside_zero(gold, prediction) || is_none_beside_zero(prediction, gold)))
    return Verdict::Unknown;
  const Verdict phrases = compare_phrases(gold, prediction);
  if (found == Verdict::No && phrases != Verdict::Yes &&
      (holds_foreign_symbol(gold) || holds_foreign_symbol(prediction)) &&
      !differ_in_numbers(gold.tokens, prediction.tokens))
    return Verdict::Unknown;
  if (phrases == Verdict::Yes || !found ||
      (gold.phrase && prediction.phrase && *found == Verdict::Unknown))
    return steps.spent() ? Verdict::Unknown : phrases;
  return steps.spent() ? Verdict::Unknown : *found;
}

// Compares options by letter and by text: "(B) 42" may mean B or 42.
Verdict compare_with_options(const Reading& wanted, const Reading& told, const CheckLimits& limits,
                             Steps& steps) {
  Verdict verdict = compare(wanted, told, limits, steps);
  if (verdict == Verdict::Yes || steps.spent()) return verdict;
  const auto against_rest = [&](const Reading& labelled, const Reading& other,
                                bool labelled_is_gold) {
    const std::vector<Token> rest = text_of_choice(labelled.tokens);
    if (rest.empty()) return;
    Reading bare;
    bare.tokens = rest;
    bare.phrase = phrase_of(rest);
    Parsed parsed = parse_answer(rest, false, steps);
    bare.conditions = std::move(parsed.conditions);
    if (parsed.node) bare.nodes.push_back(std::move(*parsed.node));
    const Verdict by_text = labelled_is_gold ? compare(bare, other, limits, steps)
                                             : compare(other, bare, limits, steps);
    if (by_text == Verdict::Yes || verdict == Verdict::Unknown) verdict = by_text;
  };
  if (text_of_choice(told.tokens).empty()) against_rest(wanted, told, true);
  if (text_of_choice(wanted.tokens).empty()) against_rest(told, wanted, false);
  return verdict;
}

Verdict compare_texts(std::string_view gold, std::string_view prediction,
                      const CheckLimits& limits) {
  Steps steps(limits.steps);
  const Reading wanted = read(gold, steps);
  const Reading told = read(prediction, steps);
  const Verdict verdict = compare_with_options(wanted, told, limits, steps);
  const bool is_doubtful =
      verdict == Verdict::Yes && differ_in_marks({.text = gold, .tokens = wanted.tokens},
                                                 {.text = prediction, .tokens = told.tokens});
  const bool may_be_equal = verdict == Verdict::No && turn_an_arrow(gold, prediction);
  return is_doubtful || may_be_equal ? Verdict::Unknown : verdict;
}

bool names_option(std::string_view answer, const CheckLimits& limits) {
  Steps steps(limits.steps);
  return is_choice(tokenize(answer, {}, steps).list);
}

// True when the text names the option and denies it: "It cannot be B", "B is wrong". An answer in a
// box is a choice, so only the box is examined.
bool rejects_answer(std::string_view prediction, std::string_view wanted, std::string_view told,
                    const CheckLimits& limits) {
  Steps steps(limits.steps);
  const char letter = letter_of_choice(tokenize(wanted, {}, steps).list);
  const bool is_marked = prediction.find("\\boxed") != std::string_view::npos ||
                         prediction.find("####") != std::string_view::npos;
  return letter != '\0' && rejects_option(narrowed(is_marked ? told : prediction), letter);
}

// True when words beside the prediction's number make it another one, such as "at most 12", and the
// reference does not have the same words.
bool is_qualified(std::string_view gold, std::string_view prediction, std::string_view told) {
  const std::string qualifier = qualifier_of(number_context(prediction, told));
  // A sign in words was read: "minus 3" beside -3.
  if (is_listed(" minus negative ", qualifier) && gold.find('-') != std::string_view::npos)
    return false;
  return !qualifier.empty() && lowered(gold).find(qualifier) == std::string::npos;
}

bool is_bare_answer(std::string_view text, std::string_view answer) {
  text = trimmed(text);
  if (text.ends_with('.')) text.remove_suffix(1);
  return text == answer;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Yes:
      return "yes";
    case Verdict::No:
      return "no";
    case Verdict::Unknown:
      break;
  }
  return "unknown";
}

Verdict check_answer(std::string_view gold, std::string_view prediction,
                     const CheckLimits& limits) {
  const std::string wanted = extract_answer(gold, Author::Reference);
  if (!wanted.empty() && trimmed(gold) == trimmed(prediction)) return Verdict::Yes;
  const std::string told = extract_answer(prediction, Author::Model);
  const Verdict verdict = compare_texts(wanted, told, limits);
  if (verdict == Verdict::Yes && rejects_answer(prediction, wanted, told, limits))
    return Verdict::Unknown;
  if (verdict == Verdict::Yes && is_qualified(gold, prediction, told)) return Verdict::Unknown;
  const bool wants_option = names_option(wanted, limits);
  if (verdict != Verdict::No || (!wants_option && !names_option(told, limits)) ||
      marks_answer(prediction) || is_bare_answer(prediction, told))
    return verdict;
  if (!wants_option) return Verdict::Unknown;  // such as "(B), because it is 42"
  // In prose without a mark the answer is the option that the prose names, not the last number.
  const std::string option = option_told(narrowed(prediction), false);
  return option.empty() ? Verdict::Unknown : compare_texts(wanted, option, limits);
}

std::vector<int> equivalence_classes(std::span<const std::string> answers,
                                     const CheckLimits& limits) {
  std::vector<int> classes;
  // The first answer of each class.
  std::vector<size_t> firsts;
  for (size_t index = 0; index < answers.size(); ++index) {
    int found = -1;
    if (!trimmed(answers[index]).empty()) {
      for (size_t candidate = 0; candidate < firsts.size() && found < 0; ++candidate) {
        const std::string& first = answers[firsts[candidate]];
        if (first == answers[index] ||
            compare_texts(first, answers[index], limits) == Verdict::Yes ||
            compare_texts(answers[index], first, limits) == Verdict::Yes)
          found = static_cast<int>(candidate);
      }
      if (found < 0) {
        found = static_cast<int>(firsts.size());
        firsts.push_back(index);
      }
    }
    classes.push_back(found);
  }
  return classes;
}

}  // namespace convoy::answers
