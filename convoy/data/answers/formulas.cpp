// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/formulas.h"

#include <algorithm>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

// The last number, with its sign, separators, fraction line and percent sign.
std::string last_number(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  if (end == 0) return {};
  size_t begin = end;
  while (begin > 0 && is_number_letter(text[begin - 1]) && text[begin - 1] != '%') --begin;
  while (begin < end && !is_digit(text[begin]) && text[begin] != '.') ++begin;
  if (end < text.size() && text[end] == '%') ++end;
  const bool minus =
      begin > 0 && text[begin - 1] == '-' && (begin < 2 || !is_digit(text[begin - 2]));
  std::string number(text.substr(begin, end - begin));
  return minus ? "-" + number : number;
}

// Number of bytes of Chinese characters or Russian letters at the start of `text`.
size_t foreign_run(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead == 0xd0 || lead == 0xd1 ? 2 : lead >= 0xe4 && lead <= 0xe9 ? 3 : 0;
    if (length == 0 || at + length > text.size()) break;
    at += length;
  }
  return at;
}

}  // namespace

bool is_number_letter(char letter) {
  return is_digit(letter) || letter == '.' || letter == ',' || letter == '/' || letter == '%';
}

size_t plain_words(std::string_view text) {
  size_t words = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\\') {
      ++at;
      const size_t name = at;
      while (at < text.size() && is_letter(text[at])) ++at;
      const std::string_view command = text.substr(name, at - name);
      if (command == "begin" || command == "end") at = std::min(text.find('}', at), text.size());
      if (at < text.size() && command.empty()) ++at;
    } else if (is_letter(text[at])) {
      const size_t begin = at;
      while (at < text.size() && is_letter(text[at])) ++at;
      if (at - begin >= 2) ++words;
    } else if (const size_t length = foreign_run(text.substr(at)); length > 0) {
      constexpr size_t kBytesOfWord = 6;  // two Chinese characters, three Russian letters
      words += (length + kBytesOfWord - 1) / kBytesOfWord;
      at += length;
    } else {
      ++at;
    }
  }
  return words;
}

std::vector<Formula> formulas(std::string_view text) {
  std::vector<Formula> found;
  for (size_t at = 0; at < text.size();) {
    std::string_view close;
    size_t width = 1;
    if (text.substr(at).starts_with("$$")) {
      close = "$$";
      width = 2;
    } else if (text[at] == '$') {
      close = "$";
    } else if (text.substr(at).starts_with("\\(")) {
      close = "\\)";
      width = 2;
    } else if (text.substr(at).starts_with("\\[")) {
      close = "\\]";
      width = 2;
    } else {
      at += text[at] == '\\' ? 2 : 1;
      continue;
    }
    size_t end = at + width;
    while (end < text.size() && !text.substr(end).starts_with(close))
      end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) {
      // The opening sign has no closing one: a currency sign, or a text that was cut.
      break;
    }
    found.push_back({at, end + close.size(), text.substr(at + width, end - at - width)});
    at = end + close.size();
  }
  return found;
}

std::string joined_to(std::string_view text, const std::vector<Formula>& all, size_t last) {
  std::string answer(trimmed(all[last].content));
  for (size_t index = last; index > 0; --index) {
    const std::string_view between =
        trimmed(text.substr(all[index - 1].end, all[index].begin - all[index - 1].end));
    if (between != "and" && between != "or" && between != "," && between != ", and" &&
        between != ", or")
      break;
    answer = std::string(trimmed(all[index - 1].content)) + ", " + answer;
  }
  return answer;
}

std::string last_mathematics(std::string_view text) {
  const std::vector<Formula> all = formulas(text);
  for (size_t index = all.size(); index-- > 0;) {
    if (trimmed(all[index].content).empty()) continue;
    if (index + 1 == all.size())
      if (std::string number = last_number(text.substr(all[index].end)); !number.empty())
        return number;
    return joined_to(text, all, index);
  }
  return last_number(text);
}

size_t words_around_formulas(std::string_view text) {
  size_t words = 0;
  size_t begin = 0;
  for (const Formula& formula : formulas(text)) {
    words += plain_words(text.substr(begin, formula.begin - begin));
    begin = formula.end;
  }
  return words + plain_words(text.substr(begin));
}

}  // namespace convoy::answers
