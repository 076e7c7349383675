// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/qualifiers.h"

#include <algorithm>
#include <span>
#include <vector>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

constexpr std::string_view kApostrophe = "’";

bool is_wide(char letter) { return static_cast<unsigned char>(letter) >= 0x80; }

// The words of `text` in lower case. "#" stands for a number, and each of , ; : = is an element of
// its own. Commands of LaTeX are left out.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const char letter = text[at];
    if (letter == '\\') {
      ++at;
      while (at < text.size() && is_letter(text[at])) ++at;
    } else if (is_letter(letter) || is_wide(letter)) {
      std::string word;
      while (at < text.size() && (is_letter(text[at]) || is_wide(text[at]) || text[at] == '\'')) {
        const bool is_apostrophe = starts_at(text, at, kApostrophe);
        word += is_apostrophe ? '\'' : text[at];
        at += is_apostrophe ? kApostrophe.size() : 1;
      }
      words.push_back(lowered(word));
    } else if (is_digit(letter)) {
      while (at < text.size() && is_digit(text[at])) ++at;
      words.push_back("#");
    } else {
      if (std::string_view(",;:=").find(letter) != std::string_view::npos)
        words.emplace_back(1, letter);
      ++at;
    }
  }
  return words;
}

bool negates(std::string_view word) {
  return word.ends_with("n't") ||
         is_listed(
             " not never cannot neither nor hardly isnt doesnt cant wont не нет pas jamais nicht "
             "kein keine keinen nunca ",
             word);
}

bool compares_in_other_languages(std::string_view word) {
  return is_listed(
      " меньше больше менее более минус moins menos mayor menor más mehr weniger kleiner größer "
      "grösser mindestens höchstens ",
      word);
}

bool is_verb(std::string_view word) {
  return is_listed(" is are was were be been equals = : ", word);
}

// Words that may stand between a negation and its verb.
bool is_auxiliary(std::string_view word) {
  return is_listed(
      " can could should would must may might will does do did has have to probably possibly "
      "definitely certainly clearly simply ",
      word);
}

// True when "but" excludes the number: "anything but 12". Elsewhere it begins a clause: "not 5 but
// 12".
bool excludes(std::span<const std::string> up_to_but) {
  return up_to_but.size() >= 2 &&
         is_listed(" anything everything all any ", up_to_but[up_to_but.size() - 2]);
}

// The negation or foreign comparison between the last verb and the number, the verb included.
std::string negation_in(std::span<const std::string> words) {
  for (bool behind_verb = false; !words.empty(); words = words.first(words.size() - 1)) {
    const std::string& word = words.back();
    if (negates(word)) return word;
    if (is_listed(" , ; ", word) || (word == "but" && !excludes(words))) break;
    if (behind_verb && !is_auxiliary(word)) break;
    if (!behind_verb && compares_in_other_languages(word)) return word;
    if (is_listed(" es son ", word) && words.size() >= 2 && words[words.size() - 2] == "no")
      return "no";
    if (is_listed(" : = ", word)) break;
    behind_verb |= is_verb(word);
  }
  return {};
}

bool is_filler(std::string_view word) {
  return is_listed(
      " the a an about approximately roughly around exactly precisely equal or to value number "
      "integer ",
      word);
}

// The relation that takes the number as its part: "half of", "sum of 5 and".
std::string relation_before(std::span<const std::string> words) {
  const bool takes_several = !words.empty() && words.back() == "and";
  while (takes_several && !words.empty() && is_listed(" # and , ", words.back()))
    words = words.first(words.size() - 1);
  if (words.size() < 2 || words.back() != "of") return {};
  const std::string& noun = words[words.size() - 2];
  if (takes_several && is_listed(" sum product difference ratio quotient ", noun)) return noun;
  const bool scales =
      noun == "factor" && std::find(words.end() - std::min<ptrdiff_t>(4, std::ssize(words)),
                                    words.end(), "by") != words.end();
  const bool relates = is_listed(
      " half third quarter fourth fifth tenth multiple multiples root roots factor divisor power "
      "square cube logarithm log double triple reciprocal opposite inverse negative percent "
      "short instead excess upwards sine cosine tangent ",
      noun);
  return relates && !scales ? noun : std::string();
}

// The word directly before the number that changes it: "than", "at most", "up to", "divisible by".
std::string comparison_before(std::span<const std::string> words) {
  while (!words.empty() && is_filler(words.back())) words = words.first(words.size() - 1);
  if (std::string relation = relation_before(words); !relation.empty()) return relation;
  if (words.empty()) return {};
  const std::string& last = words.back();
  const auto word_before = [&](size_t ahead) {
    return words.size() > ahead ? std::string_view(words[words.size() - 1 - ahead])
                                : std::string_view();
  };
  if (is_listed(
          " than under below above over beyond exceeds exceed exceeding minus negative plus times "
          "half twice thrice double triple until before after excluding except between base mod "
          "modulo not never no without ",
          last))
    return last;
  const std::string_view before = word_before(1);
  const bool bounds = is_listed(" most least ", last) && (before == "at" || word_before(2) == "at");
  const bool limits =
      last == "up" && !before.starts_with("add") && !before.starts_with("sum") &&
      !is_listed(" come comes coming total totals totaling make makes making end ends ", before);
  const bool divides = last == "by" && is_listed(
                                           " divisible divided multiplied increased decreased "
                                           "reduced exceeded larger smaller greater less ",
                                           before);
  const bool equates = last == "as" && is_listed(" much many little few high low ", before);
  return bounds || limits || divides || equates || (last == "but" && excludes(words))
             ? last
             : std::string();
}

// "The wrong answer is", "it is not true that", "I doubt that".
std::string denial_in(std::span<const std::string> words) {
  for (size_t at = 0; at + 1 < words.size(); ++at) {
    if (is_listed(" answer answers ", words[at + 1]) &&
        is_listed(" wrong incorrect false mistaken erroneous bad naive tempting ", words[at]))
      return words[at];
    if (negates(words[at]) && is_listed(" true correct right ", words[at + 1]) &&
        at + 2 < words.size() && words[at + 2] == "that")
      return words[at];
    if (is_listed(" doubt doubtful ", words[at])) return words[at];
  }
  return {};
}

// Chinese comparisons and negations, which stand directly before the number.
std::string chinese_before(std::string_view before) {
  static constexpr std::string_view kWords[] = {"不是", "不等于", "不为", "并非", "小于", "大于",
                                                "至少", "至多",   "最多", "最少", "超过", "少于",
                                                "多于", "低于",   "高于", "负",   "不足", "不到"};
  for (const std::string_view word : kWords)
    if (trimmed(before).ends_with(word)) return std::string(word);
  return {};
}

// The words behind the number, when only a space or markup separates them from it.
std::string qualifier_behind(std::string_view after) {
  while (!after.empty()) {
    if (is_space(after.front()) ||
        std::string_view("$*{}").find(after.front()) != std::string_view::npos)
      after.remove_prefix(1);
    else if (after.starts_with("\\text"))
      after.remove_prefix(std::min(after.find('{'), after.size()));
    else if (after.size() > 1 && after[0] == '\\' && !is_letter(after[1]))
      after.remove_prefix(2);
    else
      break;
  }
  for (const std::string_view word : {"倍", "次方", "的倍", "的平方", "的一半"})
    if (after.starts_with(word)) return std::string(word);
  if (after.empty() || !is_letter(after.front())) return {};
  const std::vector<std::string> words = words_of(after);
  const auto word = [&](size_t index) {
    return index < words.size() ? std::string_view(words[index]) : std::string_view();
  };
  const bool raises =
      word(0) == "to" && word(1) == "the" && (word(2) == "power" || word(3) == "power");
  const bool bounds =
      word(0) == "or" &&
      is_listed(" more less fewer greater higher lower above below larger smaller over under ",
                word(1));
  const bool denied =
      is_listed(" is was are were does ", word(0)) &&
      (negates(word(1)) || is_listed(" wrong incorrect false impossible ", word(1)));
  if (raises || bounds || denied || negates(word(0)) ||
      is_listed(" squared cubed factorial below above modulo minus plus ", word(0)))
    return raises || bounds || denied ? std::string(word(1)) : std::string(word(0));
  return {};
}

}  // namespace

std::string qualifier_of(const NumberContext& context) {
  const std::vector<std::string> words = words_of(context.before);
  for (std::string found : {negation_in(words), comparison_before(words), denial_in(words),
                            chinese_before(context.before), qualifier_behind(context.after)})
    if (!found.empty()) return found;
  return {};
}

}  // namespace convoy::answers
