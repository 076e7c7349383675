// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/dropped_marks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/measure_unit.h"
#include "convoy/data/answers/number.h"

namespace convoy::answers {
namespace {

bool are_words(std::span<const Token> tokens) {
  return !tokens.empty() && std::all_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.type == TokenType::Word || token.type == TokenType::Letter;
  });
}

// The words that tell which numbers, roots or units are meant, without the s of a plural.
std::set<std::string> kinds_in(std::span<const Token> tokens) {
  std::set<std::string> kinds;
  for (const Token& token : tokens) {
    if (token.type != TokenType::Word && token.type != TokenType::Function) continue;
    std::string low = lowered(token.text);
    if (low.size() > 3 && low.ends_with('s')) low.pop_back();
    if (is_listed(
            " even odd prime composite positive negative nonnegative nonpositive nonzero real "
            "complex imaginary rational irrational integer natural square cubic min max minimum "
            "maximum ",
            low))
      kinds.insert(low);
  }
  return kinds;
}

// "all even integers" and "all odd integers"; "5 square units" beside 5 is one answer.
bool differ_in_kinds(std::span<const Token> a, std::span<const Token> b) {
  const std::set<std::string> of_a = kinds_in(a);
  const std::set<std::string> of_b = kinds_in(b);
  if (of_a == of_b) return false;
  return (!of_a.empty() && !of_b.empty()) || (are_words(a) && are_words(b));
}

// True for a run of letters that may be a product of variables or a name of points: xy, abc, ABC.
bool may_be_product(std::string_view word) {
  constexpr size_t kLongest = 4;
  if (word.size() > kLongest) return false;
  if (std::all_of(word.begin(), word.end(), is_upper)) return true;
  if (word.size() == 2)
    return !is_listed(" no on of is it at to in as be we he me up us so or an am my by do go if ",
                      lowered(word));
  std::string sorted = lowered(word);
  std::sort(sorted.begin(), sorted.end());
  const bool has_no_vowel = sorted.find_first_of("aeiou") == std::string::npos;
  return has_no_vowel || sorted.find_first_of("xz") != std::string::npos ||
         sorted.back() - sorted.front() < static_cast<int>(sorted.size());
}

// "Paris" and "pairs", equal as products of letters.
bool are_words_of_same_letters(std::span<const Token> a, std::span<const Token> b) {
  const auto is_one_word = [](std::span<const Token> side) {
    return side.size() == 1 && side[0].type == TokenType::Word && !may_be_product(side[0].text);
  };
  if (!is_one_word(a) || !is_one_word(b)) return false;
  const std::string left = lowered(a[0].text);
  const std::string right = lowered(b[0].text);
  return left != right && left.size() == right.size() &&
         std::is_permutation(left.begin(), left.end(), right.begin());
}

// The number before each counted noun: {boys: 5, girls: 3}.
std::map<std::string, std::string> counts_in(std::span<const Token> tokens) {
  std::map<std::string, std::string> counts;
  for (size_t at = 0; at + 1 < tokens.size(); ++at)
    if (tokens[at].type == TokenType::Number && tokens[at + 1].type == TokenType::Word &&
        !is_listed(" and or ", tokens[at + 1].text) && !unit_named(tokens[at + 1].text))
      counts[lowered(tokens[at + 1].text)] = tokens[at].text;
  return counts;
}

// "5 boys, 3 girls" and "3 boys, 5 girls".
bool differ_in_counts(std::span<const Token> a, std::span<const Token> b) {
  const std::map<std::string, std::string> of_a = counts_in(a);
  const std::map<std::string, std::string> of_b = counts_in(b);
  if (of_a.size() < 2) return false;
  return std::any_of(of_a.begin(), of_a.end(), [&](const auto& count) {
    const auto other = of_b.find(count.first);
    return other != of_b.end() &&
           same(parse_digits(count.second), parse_digits(other->second)) != Same::Yes;
  });
}

// The commands named `name` in `text` with the content of the braces behind each.
std::vector<std::string> arguments_of(std::string_view text, std::string_view name) {
  std::vector<std::string> arguments;
  for (size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 1)) {
    if (!starts_at(text, at + 1, name)) continue;
    const size_t behind = at + 1 + name.size();
    if (behind < text.size() && is_letter(text[behind])) continue;
    const bool is_repeating = at > 0 && (is_digit(text[at - 1]) || text[at - 1] == '.');
    if (is_repeating) continue;
    std::string_view rest = trimmed(text.substr(behind));
    if (rest.starts_with('{'))
      rest = rest.substr(1, std::min(rest.find('}'), rest.size()) - 1);
    else
      rest = rest.substr(0, 1);
    arguments.emplace_back(trimmed(rest));
  }
  return arguments;
}

size_t count_of(std::string_view text, std::initializer_list<std::string_view> names) {
  size_t count = 0;
  for (const std::string_view name : names) count += arguments_of(text, name).size();
  return count;
}

// The accents that make another value of what they stand above. A line above several letters or
// digits, as in \overline{AB}, and the hats of unit vectors make none.
std::vector<std::string> accents_in(std::string_view text) {
  if (const size_t sign = text.rfind('='); sign != std::string_view::npos)
    text.remove_prefix(sign + 1);
  std::vector<std::string> accents;
  for (const auto& [name, accent] : {std::pair("bar", "bar"),
                                     {"overline", "bar"},
                                     {"hat", "hat"},
                                     {"widehat", "hat"},
                                     {"tilde", "tilde"},
                                     {"widetilde", "tilde"},
                                     {"dot", "dot"},
                                     {"ddot", "ddot"}})
    for (const std::string& argument : arguments_of(text, name)) {
      const bool is_plain =
          argument.size() > 1 && std::all_of(argument.begin(), argument.end(), [](char letter) {
            return is_letter(letter) || is_digit(letter);
          });
      const bool is_unit_vector =
          std::string_view(accent) == "hat" && is_listed(" i j k x y z \\imath \\jmath ", argument);
      if (!is_plain && !is_unit_vector) accents.push_back(accent + (":" + argument));
    }
  std::sort(accents.begin(), accents.end());
  return accents;
}

// Arrows and signs of logic or of vector products that both answers have, but not the same ones.
bool differ_in_signs(std::string_view a, std::string_view b) {
  const auto differ = [&](std::initializer_list<std::string_view> one,
                          std::initializer_list<std::string_view> other) {
    const std::pair of_a(count_of(a, one), count_of(a, other));
    const std::pair of_b(count_of(b, one), count_of(b, other));
    return of_a != of_b && of_a.first + of_a.second > 0 && of_b.first + of_b.second > 0;
  };
  if (differ({"land", "wedge"}, {"lor", "vee"})) return true;
  if (differ({"Rightarrow", "implies", "Longrightarrow"}, {"Leftrightarrow", "iff"})) return true;
  const bool has_vectors = count_of(a, {"mathbf", "vec", "boldsymbol"}) > 0;
  return has_vectors && differ({"cdot"}, {"times"});
}

// The points of the arrows in `text`: AB of \vec{AB}.
std::vector<std::string> arrows_in(std::string_view text) {
  std::vector<std::string> arrows = arguments_of(text, "vec");
  for (std::string& arrow : arguments_of(text, "overrightarrow"))
    arrows.push_back(std::move(arrow));
  return arrows;
}

// True for a list that goes on: "1, 2, 3, ...".
bool goes_on(std::string_view text) {
  for (const std::string_view dots : {"...", "\\dots", "\\ldots", "\\cdots", "…"})
    for (size_t at = text.find(dots); at != std::string_view::npos; at = text.find(dots, at + 1))
      if (trimmed(text.substr(0, at)).ends_with(',')) return true;
  return false;
}

// The nesting of sets: 2 for {{1}, {2}} and for {\emptyset}.
int set_depth(std::span<const Token> tokens) {
  int depth = 0;
  int deepest = 0;
  for (const Token& token : tokens) {
    depth += is_sign(token, "\\{") ? 1 : is_sign(token, "\\}") ? -1 : 0;
    deepest = std::max(deepest, depth + (is_sign(token, "emptyset") && depth > 0 ? 1 : 0));
  }
  return deepest;
}

// True for digits in groups that are no calculation: 2020-01-05, 2020/01/05, 555-1234, 3-4 days.
bool is_date_or_range(std::string_view text) {
  text = trimmed(text);
  std::string form;  // the number of digits of each group, with the signs between them
  size_t at = 0;
  for (bool is_more = true; is_more;) {
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == begin) return false;
    form += static_cast<char>('0' + std::min<size_t>(at - begin, 9));
    is_more = at < text.size() && (text[at] == '-' || text[at] == '/');
    if (is_more) form += text[at++];
  }
  const std::string_view unit = trimmed(text.substr(at));
  if (unit.empty()) return is_listed(" 4-2-2 4/2/2 2/2/4 2-2-4 1/1/4 1/2/4 2/1/4 3-4 3-3-4 ", form);
  const bool is_range = form.size() == 3 && form[1] == '-';
  return is_range && unit.size() > 2 && std::all_of(unit.begin(), unit.end(), [](char letter) {
           return is_letter(letter) || is_space(letter);
         });
}

// Gigabytes and gigabits: GB and Gb.
bool differ_in_bits(std::span<const Token> a, std::span<const Token> b) {
  const auto last_letter = [](std::span<const Token> tokens) {
    if (tokens.size() < 2 || tokens.back().type != TokenType::Word) return '\0';
    const std::string_view unit = tokens.back().text;
    return unit.size() == 2 && is_listed(" gb mb kb tb ", lowered(unit)) ? unit.back() : '\0';
  };
  const char of_a = last_letter(a);
  const char of_b = last_letter(b);
  return of_a != '\0' && of_b != '\0' && of_a != of_b;
}

}  // namespace

bool turn_an_arrow(std::string_view a, std::string_view b) {
  const std::vector<std::string> of_a = arrows_in(a);
  for (const std::string& arrow : arrows_in(b)) {
    const std::string turned(arrow.rbegin(), arrow.rend());
    if (turned != arrow && std::find(of_a.begin(), of_a.end(), turned) != of_a.end()) return true;
  }
  return false;
}

bool differ_in_marks(const WrittenAnswer& a, const WrittenAnswer& b) {
  if (a.text == b.text) return false;
  const int depth_a = set_depth(a.tokens);
  const int depth_b = set_depth(b.tokens);
  const bool is_written_alike =
      std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
  return differ_in_kinds(a.tokens, b.tokens) || are_words_of_same_letters(a.tokens, b.tokens) ||
         differ_in_counts(a.tokens, b.tokens) || accents_in(a.text) != accents_in(b.text) ||
         differ_in_signs(a.text, b.text) || turn_an_arrow(a.text, b.text) ||
         goes_on(a.text) != goes_on(b.text) ||
         (depth_a != depth_b && std::max(depth_a, depth_b) > 1) ||
         differ_in_bits(a.tokens, b.tokens) ||
         (!is_written_alike && (is_date_or_range(a.text) || is_date_or_range(b.text)));
}

}  // namespace convoy::answers
