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

// `text` ends with one of the words, as whole words in any case.
bool ends_with_word(std::string_view text, std::initializer_list<std::string_view> words) {
  const std::string low = lowered(text.substr(text.size() - std::min<size_t>(text.size(), 24)));
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (!low.ends_with(word)) return false;
    return low.size() == word.size() || !is_letter(low[low.size() - word.size() - 1]) ||
           !is_letter(word.front());
  });
}

// Skips what may stand between words and an option: brackets, quotes, marks of type.
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

// The option ends what the sentence says, or a reason follows.
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

// "(B) is correct"
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

}  // namespace

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

std::string option_told(std::string_view text, bool at_end) {
  for (size_t at = text.size(); at-- > 0;) {
    // A sentence begins before this place.
    const bool ends_sentence =
        at + 2 < text.size() && (text[at] == '.' || text[at] == '\n') && is_space(text[at + 1]);
    if (at_end && ends_sentence && !trimmed(text.substr(at + 1)).empty()) return {};
    if (!is_option(text[at])) continue;
    const char before = at > 0 ? text[at - 1] : ' ';
    const char behind = at + 1 < text.size() ? text[at + 1] : ' ';
    if (is_letter(before) || is_digit(before) || before == '\\' || before == '_' || before == '^' ||
        is_letter(behind) || is_digit(behind) || behind == '\'' || behind == '_' || behind == '^')
      continue;
    const bool is_bracketed = before == '(' && behind == ')';
    const std::string_view rest = without_closing(text.substr(at + 1));
    const bool is_meant =
        is_approved(rest) || (is_chosen(text.substr(0, at)) && may_end_here(rest, is_bracketed));
    if (is_meant) return std::string("(") + text[at] + ")";
  }
  return {};
}

}  // namespace convoy::answers
