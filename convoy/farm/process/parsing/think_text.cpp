// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/think_text.h"

#include <algorithm>

namespace convoy::process {
namespace {

constexpr std::string_view kOpenThought = "<think>";
constexpr std::string_view kCloseThought = "</think>";
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

ThinkText split_think(std::string_view text, bool prompt_opens_think) {
  const size_t open = text.find(kOpenThought);
  // The last tag counts, because a thought may quote the tags.
  const size_t close = text.rfind(kCloseThought);
  const std::string_view start = without_blanks(text.substr(0, std::min(open, text.size())));
  const bool opened_here = open != std::string_view::npos && start.empty() &&
                           (close == std::string_view::npos || open < close);
  const size_t begin = opened_here ? open + kOpenThought.size() : 0;
  if (close != std::string_view::npos && close >= begin)
    return {.think = std::string(without_blanks(text.substr(begin, close - begin))),
            .said = std::string(without_blanks(text.substr(close + kCloseThought.size())))};
  if (opened_here || prompt_opens_think)
    return {.think = std::string(without_blanks(text.substr(begin))), .is_open = true};
  return {.said = std::string(text)};
}

std::string without_calls(std::string text) {
  constexpr std::string_view kBegin = "<tool_call>";
  constexpr std::string_view kEnd = "</tool_call>";
  for (size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at)) {
    const size_t inside =
        std::min(text.find_first_not_of(kBlanks, at + kBegin.size()), text.size());
    if (inside == text.size() || (text[inside] != '{' && text[inside] != '[')) {
      at = inside;
      continue;
    }
    // Arguments may contain the end mark, so a call ends at the mark that follows the end of its
    // JSON.
    size_t end = text.find(kEnd, inside);
    const auto closes = [&text](size_t mark) {
      const char last = text[text.find_last_not_of(kBlanks, mark - 1)];
      return last == '}' || last == ']';
    };
    while (end != text.npos && !closes(end)) end = text.find(kEnd, end + 1);
    text.erase(at, end == text.npos ? text.npos : end + kEnd.size() - at);
  }
  return text;
}

nlohmann::ordered_json assistant_turn(const std::string& said, const std::string& think) {
  nlohmann::ordered_json turn = {{"role", "assistant"}, {"content", said}};
  if (!think.empty()) turn["reasoning_content"] = think;
  return turn;
}

bool opens_think(std::string_view rendered_prompt) {
  return without_blanks(rendered_prompt).ends_with(kOpenThought);
}

}  // namespace convoy::process
