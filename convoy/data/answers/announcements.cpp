// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/announcements.h"

#include <algorithm>
#include <optional>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

bool lower_matches(std::string_view text, size_t at, std::string_view low) {
  if (at + low.size() > text.size()) return false;
  for (size_t index = 0; index < low.size(); ++index)
    if (lower(text[at + index]) != low[index]) return false;
  return true;
}

}  // namespace

std::string_view sentence(std::string_view text) {
  bool in_formula = false;
  int braces = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      const char next = text[at + 1];
      if (next == '(' || next == '[') in_formula = true;
      if (next == ')' || next == ']') in_formula = false;
      ++at;
    } else if (text[at] == '$') {
      in_formula = !in_formula;
    } else if (text[at] == '{') {
      ++braces;
    } else if (text[at] == '}') {
      --braces;
    } else if (text[at] == '\n' && !in_formula) {
      return text.substr(0, at);
    } else if (!in_formula && starts_at(text, at, "。")) {
      return text.substr(0, at);
    } else if (text[at] == '.' && !in_formula && braces <= 0 &&
               (at + 1 == text.size() || is_space(text[at + 1])) &&
               !(at == 1 && is_upper(text[0])) &&
               !(at > 0 && text[at - 1] == '.')) {  // a label as in "B. 42"
      return text.substr(0, at);
    }
  }
  return text;
}

namespace {

// End of the Chinese or Russian words that announce an answer. A word that also has other uses
// announces an answer only if a colon or an option follows it.
std::optional<size_t> foreign_announcement_end(std::string_view text, size_t at) {
  struct Announcement {
    std::string_view word;
    bool needs_colon = true;
  };
  static constexpr Announcement kWords[] = {
      {"答案", false}, {"故选", false}, {"应选", false}, {"選"},    {"选择"},
      {"选"},          {"答"},          {"Ответ"},       {"ответ"}, {"ОТВЕТ"}};
  static constexpr std::string_view kSkipped[] = {"应该是", "应为", "是", "为", "：", ":",
                                                  "＝",     "=",    "*",  " ",  "—",  "\n"};
  for (const auto& [word, needs_colon] : kWords) {
    if (!starts_at(text, at, word)) continue;
    size_t next = at + word.size();
    bool has_colon = false;
    for (bool moves = true; moves;) {
      moves = false;
      for (const std::string_view skipped : kSkipped)
        if (starts_at(text, next, skipped)) {
          has_colon |= skipped != " " && skipped != "*";
          next += skipped.size();
          moves = true;
        }
    }
    const char first = next < text.size() ? text[next] : '\0';
    const char second = next + 1 < text.size() ? text[next + 1] : '\0';
    const bool is_option = (is_upper(first) && !is_letter(second)) ||
                           (first == '(' && is_upper(second)) ||
                           (is_upper(first) && is_upper(second));
    if (has_colon || is_option || (!needs_colon && next > at + word.size())) return next;
  }
  return std::nullopt;
}

// End of the words that announce an answer; empty when none begin at `at`.
std::optional<size_t> announcement_end(std::string_view text, size_t at) {
  if (!lower_matches(text, at, "answer")) return std::nullopt;
  size_t next = at + 6;
  const auto skip = [&](std::string_view letters) {
    while (next < text.size() && letters.find(text[next]) != std::string_view::npos) ++next;
  };
  skip(" \t*");
  // A few words may stand before the verb: "answer to the question is", "answer in simplest form
  // is".
  const bool says_it = lower_matches(text, next, "is ") || lower_matches(text, next, "are ");
  for (size_t ahead = next; !says_it && ahead < std::min(next + 60, text.size()); ++ahead) {
    if (text[ahead] == '.' || text[ahead] == '\n' || text[ahead] == ':' || text[ahead] == '=' ||
        text[ahead] == '$')
      break;
    if (lower_matches(text, ahead, " is ") || lower_matches(text, ahead, " is:") ||
        lower_matches(text, ahead, " is\n")) {
      next = ahead + 1;
      break;
    }
  }
  for (const std::string_view word : {"is", "are"})
    if (lower_matches(text, next, word) &&
        (next + word.size() == text.size() || !is_letter(text[next + word.size()]))) {
      next += word.size();
      skip(" \t*:=\n");
      for (const std::string_view filler : {"therefore", "thus", "simply", "then"})
        if (lower_matches(text, next, filler)) next += filler.size();
      skip(" \t*:=,\n");
      return next;
    }
  if (next < text.size() && (text[next] == ':' || text[next] == '=' || text[next] == '\n')) {
    skip(" \t*:=\n");
    return next;
  }
  return std::nullopt;
}

}  // namespace

std::string announced_answer(std::string_view text) {
  for (size_t at = text.size(); at-- > 0;) {
    std::optional<size_t> begin;
    if (lower(text[at]) == 'a' && (at == 0 || !is_letter(text[at - 1])))
      begin = announcement_end(text, at);
    else if (static_cast<unsigned char>(text[at]) >= 0xc0)
      begin = foreign_announcement_end(text, at);
    if (!begin) continue;
    std::string_view answer = trimmed(sentence(text.substr(*begin)));
    while (answer.ends_with('*') || answer.ends_with('.')) answer.remove_suffix(1);
    if (!trimmed(answer).empty()) return std::string(trimmed(answer));
  }
  return {};
}

}  // namespace convoy::answers
