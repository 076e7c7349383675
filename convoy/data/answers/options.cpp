// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/options.h"

#include <algorithm>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

bool is_option(char letter) { return letter >= 'A' && letter <= 'J'; }

bool starts_with_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.starts_with(word); });
}

// The length of the word from `words` that ends `text` as a whole word, in any case; 0 when none
// does.
size_t ending_word(std::string_view text, std::initializer_list<std::string_view> words) {
  const std::string low = lowered(text.substr(text.size() - std::min<size_t>(text.size(), 24)));
  for (const std::string_view word : words)
    if (low.ends_with(word) &&
        (low.size() == word.size() || !is_letter(low[low.size() - word.size() - 1]) ||
         !is_letter(word.front())))
      return word.size();
  return 0;
}

bool ends_with_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return ending_word(text, words) > 0;
}

// Drops brackets, quotes and font commands that may stand between words and an option.
std::string_view without_opening(std::string_view text) {
  static constexpr std::string_view kMarks[] = {"(",  "[",      "{",        "$",        "*",  " ",
                                                "\"", "\\text", "\\textbf", "\\mathrm", "\\("};
  for (bool moves = true; moves;) {
    moves = false;
    for (const std::string_view mark : kMarks)
      if (text.ends_with(mark)) {
        text.remove_suffix(mark.size());
        moves = true;
      }
  }
  return text;
}

std::string_view without_closing(std::string_view text) {
  while (!text.empty() && std::string_view(")]}$*\"").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  return text;
}

// True when nothing, the end of a sentence, or a reason follows the option.
bool may_end_here(std::string_view behind, bool is_bracketed) {
  const std::string_view rest = trimmed(behind);
  if (rest.empty() || starts_with_one_of(rest, {".", ";", "!", "。", "；", "！", "—", "– "}))
    return rest.size() < 2 || rest[0] != '.' || !is_digit(rest[1]);
  if (starts_with_one_of(rest, {"because", "since", "as ", "which", "for ", "因为", "так как",
                                "потому", "(", "so ", "by "}))
    return true;
  if (rest.front() == ',' || rest.starts_with("，"))
    return is_bracketed || starts_with_one_of(trimmed(rest.substr(rest.front() == ',' ? 1 : 3)),
                                              {"because", "since", "as ", "which", "so ", "因为",
                                               "так как", "потому", "поскольку"});
  return rest.front() == ':';
}

// True when the text approves the option before it: "(B) is correct".
bool is_approved(std::string_view behind) {
  return starts_with_one_of(
      trimmed(behind), {"is correct", "is right", "is the correct", "is the right", "is the answer",
                        "is true", "must be correct", "works", "正确", "верн"});
}

bool is_chosen(std::string_view before) {
  return ends_with_word(
      without_opening(before),
      {"option",  "choice", "choices",  "answer",  "alternative", "letter",   "is",
       "be",      "it's",   "it’s",     "pick",    "choose",      "select",   "chose",
       "picked",  "chosen", "selected", "with",    "选",          "选项",     "选择",
       "答案",    "是",     "为",       "вариант", "ответ",       "выбираем", "вариант ответа",
       "answer:", "选：",   "so,",      "hence",   "therefore"});
}

// True when the words before an option deny it: "It cannot be", "We rule out option", "neither A
// nor", "不应选". The words "the one that is not prime is" deny nothing.
bool denies_next(std::string_view before) {
  for (;;) {
    before = without_opening(before);
    if (ends_with_word(before, {"not",          "never",
                                "neither",      "nor",
                                "'t",           "’t",
                                "cannot",       "rule out",
                                "rules out",    "ruled out",
                                "cross out",    "eliminate",
                                "eliminates",   "eliminated",
                                "exclude",      "excludes",
                                "excluded",     "reject",
                                "rejects",      "rejected",
                                "discard",      "discarded",
                                "dismiss",      "avoid",
                                "except",       "than",
                                "instead of",   "but not",
                                "doubt",        "impossible",
                                "not possible", "not true that",
                                "false that",   "not the case that",
                                "unlikely to",  "unlikely that",
                                "unlikely",     "hardly",
                                "不",           "非",
                                "未",           "没",
                                "没有",         "排除",
                                "排除了",       "除了",
                                "除去",         "别选",
                                "勿选",         "误选",
                                "错选",         "не",
                                "ни",           "нельзя",
                                "кроме",        "исключаем",
                                "исключить",    "отвергаем"}))
      return true;
    const size_t filler = ending_word(
        before, {"option", "choice",   "choices", "answer", "letter",  "alternative", "the",
                 "be",     "is",       "pick",    "choose", "select",  "as",          "go with",
                 "it",     "possibly", "really",  "think",  "believe", "the correct", "the right",
                 "that",   "选项",     "选择",    "选",     "是",      "为",          "答案",
                 "应该",   "应",       "该",      "可能",   "可以",    "可",          "能",
                 "会",     "вариант",  "ответ",   "это",    "быть",    "может"});
    before.remove_suffix(filler);
    if (filler > 0) continue;
    if (!ends_with_word(before, {"or"})) return false;
    before.remove_suffix(2);  // the second option of "not A or B"
    while (!before.empty() && (is_space(before.back()) || before.back() == ')'))
      before.remove_suffix(1);
    if (before.empty() || !is_option(before.back())) return false;
    before.remove_suffix(1);
  }
}

// True when the text denies the option before it: "B不正确", "B是错的", "B неверно", "B ✗".
bool is_denied_in_other_scripts(std::string_view behind) {
  for (bool moves = true; moves;) {
    moves = false;
    for (const std::string_view skipped :
         {"选项", "被", "应该", "应", "可以", "可", "这个", "绝对", "肯定", "明显", "一定", "完全",
          "项",   "也", "都",   "并", "是",   "为", "显然", "—",    "это",  " ",    "-"})
      if (behind.starts_with(skipped)) {
        behind.remove_prefix(skipped.size());
        moves = true;
      }
  }
  return starts_with_one_of(behind,
                            {"不正确", "不对",     "不是答案", "不选",     "不符",      "不成立",
                             "不行",   "不可",     "不能",     "不合",     "不满足",    "不适",
                             "错",     "误",       "有误",     "有错",     "非",        "排除",
                             "×",      "✗",        "✘",        "❌",        "неверн",    "неправ",
                             "ошиб",   "исключ",   "ложн",     "не верн",  "не подход", "не прав",
                             "не явл", "не может", "не ответ", "не годит", "не удовл"}) ||
         behind == "不" || behind == "不是" || behind == "не";
}

// True when the text denies the option before it: "is wrong", "can't be the answer", "does not
// fit". A reason such as "is not prime" denies nothing.
bool is_denied(std::string_view behind) {
  static constexpr std::string_view kPassed =
      " is are was be been must can could will would may might should does do did has have seems "
      "looks the a an at all also just then thus therefore actually clearly definitely obviously "
      "certainly simply ";
  if (is_denied_in_other_scripts(behind)) return true;
  const std::string low = lowered(behind.substr(0, 80));
  bool negated = false;
  size_t passed = 0;
  std::string_view rest = low;
  for (;; ++passed) {
    while (!rest.empty() && (is_space(rest.front()) || rest.front() == '*')) rest.remove_prefix(1);
    size_t end = 0;
    while (end < rest.size() && !is_space(rest[end]) &&
           std::string_view(".,;:!?()}").find(rest[end]) == std::string_view::npos)
      ++end;
    const std::string_view word = rest.substr(0, end);
    if (is_listed(" not never cannot ", word) || word.ends_with("n't") || word.ends_with("n’t"))
      negated = true;
    else if (!is_listed(kPassed, word))
      break;
    rest.remove_prefix(end);
  }
  if (negated)
    return rest.empty() || !is_letter(rest.front()) || rest == "it" || rest.starts_with("it.") ||
           starts_with_one_of(
               rest, {"correct", "right",    "true",   "answer", "valid",    "possible", "accept",
                      "option",  "fit",      "work",   "hold",   "satisf",   "appl",     "match",
                      "best",    "solution", "choice", "chosen", "suitable", "meet",     "make"});
  if (starts_with_one_of(rest, {"wrong", "incorrect", "fails"})) return true;
  return passed > 0 &&
         starts_with_one_of(rest, {"false", "invalid", "impossible", "out", "ruled", "eliminated",
                                   "excluded", "rejected", "untrue", "unsuitable"});
}

bool stands_alone(std::string_view text, size_t at) {
  const char before = at > 0 ? text[at - 1] : ' ';
  const char behind = at + 1 < text.size() ? text[at + 1] : ' ';
  return !(is_letter(before) || is_digit(before) || before == '\\' || before == '_' ||
           before == '^' || is_letter(behind) || is_digit(behind) || behind == '\'' ||
           behind == '_' || behind == '^');
}

std::string_view behind_option(std::string_view text, size_t at) {
  std::string_view rest = without_closing(text.substr(at + 1));
  for (const std::string_view opening : {"\\text{", "\\textbf{", "\\mathrm{"})
    if (rest.starts_with(opening)) rest.remove_prefix(opening.size());
  return rest;
}

bool is_rejected(std::string_view text, size_t at) {
  return denies_next(text.substr(0, at)) || is_denied(behind_option(text, at));
}

}  // namespace

bool rejects_option(std::string_view text, char letter) {
  for (size_t at = text.size(); at-- > 0;) {
    const bool is_small = lower(letter) == text[at] && at > 0 && text[at - 1] == '(';
    if ((text[at] == letter || is_small) && stands_alone(text, at)) return is_rejected(text, at);
  }
  return false;
}

size_t option_length(std::string_view text) {
  size_t at = 0;
  for (const std::string_view word : {"option ", "Option ", "choice ", "Choice "})
    if (text.starts_with(word)) at = word.size();
  const bool is_named = at > 0;
  const bool is_bracketed = at < text.size() && text[at] == '(';
  at += is_bracketed;
  if (at >= text.size() || !is_option(text[at])) return 0;
  ++at;
  const char behind = at < text.size() ? text[at] : '\0';
  if (is_bracketed) return behind == ')' ? at + 1 : 0;
  if (behind == ')' || behind == '.' || behind == ':') return at + 1;
  return is_named && !is_letter(behind) ? at : 0;
}

std::string_view without_reason(std::string_view answer) {
  constexpr size_t kLongest = 400;
  if (answer.size() > kLongest) return answer;
  size_t end = answer.size();
  for (const std::string_view word : {" because ", ", since ", " since ", ", because ", "因为",
                                      " так как ", " потому что ", " поскольку "})
    if (const size_t at = answer.find(word); at != std::string_view::npos) end = std::min(end, at);
  std::string_view kept = trimmed(answer.substr(0, end));
  while (kept.ends_with(',') || kept.ends_with("，"))
    kept.remove_suffix(kept.ends_with(',') ? 1 : 3);
  return kept.empty() ? answer : kept;
}

std::string_view without_remark(std::string_view answer) {
  for (const std::string_view word :
       {", which ", ", whereas ", ", while ", ", as ", ", not ", ", который ", ", а не "}) {
    const std::string_view kept = trimmed(answer.substr(0, answer.find(word)));
    const bool is_bracketed = kept.size() == 3 && kept[0] == '(' && kept[2] == ')';
    if (kept.size() < answer.size() && (kept.size() == 1 || is_bracketed) &&
        is_option(kept[is_bracketed ? 1 : 0]))
      return kept;
  }
  return answer;
}

std::string option_told(std::string_view text, bool at_end) {
  for (size_t at = text.size(); at-- > 0;) {
    // With `at_end` the search stops at the start of the last sentence.
    const bool ends_sentence =
        at + 2 < text.size() && (text[at] == '.' || text[at] == '\n') && is_space(text[at + 1]);
    if (at_end && ends_sentence && !trimmed(text.substr(at + 1)).empty()) return {};
    if (!is_option(text[at])) continue;
    if (!stands_alone(text, at)) continue;
    const bool is_bracketed = at > 0 && text[at - 1] == '(' && starts_at(text, at + 1, ")");
    const std::string_view rest = without_closing(text.substr(at + 1));
    const bool is_meant =
        is_approved(rest) || (is_chosen(text.substr(0, at)) && may_end_here(rest, is_bracketed));
    if (is_meant && !is_rejected(text, at)) return std::string("(") + text[at] + ")";
  }
  return {};
}

}  // namespace convoy::answers
