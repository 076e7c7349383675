// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/turn_marks.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kBlanks = " \t\r\n";
// Up to this many turns are located just as fast one by one.
constexpr size_t kFewTurns = 2;

bool is_of(const ordered_json& message, std::string_view role) {
  return message.is_object() && message.contains("role") && message["role"] == role;
}

// White space at the end of a content, which is behind the content's mark. A template may write or
// strip it.
std::string blanks_behind(const ordered_json& message) {
  const ordered_json& content = message["content"];
  const auto& text =
      (content.is_array() ? content.back()["text"] : content).get_ref<const std::string&>();
  return text.substr(text.find_last_not_of(kBlanks) + 1);
}

bool holds_text(const ordered_json& value, std::string_view wanted) {
  if (value.is_string())
    return value.get_ref<const std::string&>().find(wanted) != std::string::npos;
  return value.is_structured() && std::any_of(value.begin(), value.end(), [&](const auto& inner) {
           return holds_text(inner, wanted);
         });
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

// Recognises turns by the text around one of them: the header before its content and the closing
// after it.
class TurnPattern {
 public:
  TurnPattern(const ordered_json& messages, const std::string& full,
              std::vector<ContentPlace> contents)
      : messages_(messages), full_(full), contents_(std::move(contents)) {}

  bool has_content(size_t index) const { return contents_[index].end.has_value(); }

  // True when the content ends at its mark, so no white space follows.
  bool ends_at_mark(size_t index) const {
    return has_content(index) && blanks_behind(messages_[index]).empty();
  }

  // Takes header and closing from a turn whose content ends at its mark. Returns false when the
  // turn does not show them.
  bool learn(const TurnSpan& turn, const std::string& header) {
    const size_t content_end = *contents_[static_cast<size_t>(turn.message)].end;
    const auto end = static_cast<size_t>(turn.end);
    header_ = header;
    if (end <= content_end || without_blanks(header_).empty()) return false;
    closing_ = full_.substr(content_end, end - content_end);
    return true;
  }

  std::optional<TurnSpan> find(size_t index) const {
    // A message whose text resembles the header or the closing is located by TurnFinder.
    if (index == 0 || !contents_[index - 1].end ||
        holds_text(messages_[index], without_blanks(header_)))
      return std::nullopt;
    return has_content(index) ? around_content(index) : between_contents(index);
  }

 private:
  std::optional<TurnSpan> around_content(size_t index) const {
    const ContentPlace& content = contents_[index];
    const size_t anchor = content.begin.value_or(*content.end);
    const size_t before = *contents_[index - 1].end;
    if (anchor < before + header_.size()) return std::nullopt;
    const size_t header = full_.rfind(header_, anchor - header_.size());
    const auto end = end_of_content(index);
    if (header == std::string::npos || header < before || !end) return std::nullopt;
    return span(index, header + header_.size(), *end + closing_.size());
  }

  // The end of the content: the closing follows either the white space behind the mark, or the mark
  // itself. Empty when both match.
  std::optional<size_t> end_of_content(size_t index) const {
    const size_t mark = *contents_[index].end;
    const std::string blanks = blanks_behind(messages_[index]);
    const bool stripped = full_.compare(mark, closing_.size(), closing_) == 0;
    const bool kept = !blanks.empty() && full_.compare(mark, blanks.size(), blanks) == 0 &&
                      full_.compare(mark + blanks.size(), closing_.size(), closing_) == 0;
    if (stripped == kept) return std::nullopt;
    return kept ? mark + blanks.size() : mark;
  }

  // A turn without content, such as tool calls, ends at the first closing, unless the message
  // itself contains the text of a closing.
  std::optional<TurnSpan> between_contents(size_t index) const {
    const std::string_view closing = without_blanks(closing_);
    if (index + 1 >= messages_.size() || !contents_[index + 1].begin || closing.empty() ||
        holds_text(messages_[index], closing))
      return std::nullopt;
    const size_t after = *contents_[index + 1].begin;
    const size_t header = full_.find(header_, *contents_[index - 1].end);
    if (header == std::string::npos || header + header_.size() > after) return std::nullopt;
    const size_t begin = header + header_.size();
    const size_t found = full_.find(closing_, begin);
    if (found == std::string::npos || found + closing_.size() > after) return std::nullopt;
    return span(index, begin, found + closing_.size());
  }

  static TurnSpan span(size_t index, size_t begin, size_t end) {
    return {static_cast<int64_t>(begin), static_cast<int64_t>(end), static_cast<int64_t>(index)};
  }

  const ordered_json& messages_;
  const std::string& full_;
  std::vector<ContentPlace> contents_;
  std::string header_;
  std::string closing_;
};

using Located = std::vector<std::optional<TurnSpan>>;

// The turns that the pattern finds, in the order of `turns`; empty when a checked turn is wrong.
Located locate_by_pattern(const TurnFinder& finder, TurnPattern& pattern,
                          const std::vector<size_t>& turns) {
  Located located(turns.size());
  const auto model = std::find_if(turns.begin(), turns.end(), [&](size_t index) {
    return index > 0 && pattern.ends_at_mark(index);
  });
  if (model == turns.end()) return located;
  const auto header = finder.turn_header(*model);
  if (!header || !pattern.learn(finder.find(*model), *header)) return located;
  for (size_t turn = 0; turn < turns.size(); ++turn) located[turn] = pattern.find(turns[turn]);
  // Compares the model turn itself, the first turn without content and the last turn with the
  // result of TurnFinder.
  const auto is_right = [&](size_t turn) {
    return !located[turn] || finder.find(turns[turn]) == *located[turn];
  };
  // A template may close the conversation behind the last turn, so that this turn is longer.
  if (std::optional<TurnSpan>& last = located.back()) {
    const TurnSpan found = finder.find(turns.back());
    if (found.begin == last->begin && found.end >= last->end) last = found;
  }
  const auto bare = std::find_if(turns.begin(), turns.end(),
                                 [&](size_t index) { return !pattern.has_content(index); });
  const auto order = [&](auto place) { return static_cast<size_t>(place - turns.begin()); };
  if (!is_right(order(model)) || !is_right(turns.size() - 1) ||
      (bare != turns.end() && !is_right(order(bare))))
    return Located(turns.size());
  return located;
}

}  // namespace

std::vector<TurnSpan> find_turns_of(const std::string& role, const ChatRenders& renders,
                                    const ordered_json& messages, const std::string& full,
                                    size_t first_message) {
  const TurnFinder finder(renders, messages, full);
  std::vector<TurnSpan> spans;
  for (size_t index = first_message; index < messages.size(); ++index)
    if (is_of(messages[index], role))
      if (const auto span = finder.find_content(index)) spans.push_back(*span);
  return spans;
}

std::vector<TurnSpan> find_assistant_turns(const ChatRenders& renders, const ordered_json& messages,
                                           const std::string& full, const MessageTexts& texts,
                                           size_t first_message,
                                           const std::vector<size_t>& left_out) {
  std::vector<size_t> turns;
  for (size_t index = first_message; index < messages.size(); ++index)
    if (is_of(messages[index], "assistant") &&
        std::find(left_out.begin(), left_out.end(), index) == left_out.end())
      turns.push_back(index);
  const TurnFinder finder(renders, messages, full);
  Located located(turns.size());
  if (turns.size() > kFewTurns)
    if (auto contents = content_places(texts, messages.size())) {
      TurnPattern pattern(messages, full, std::move(*contents));
      located = locate_by_pattern(finder, pattern, turns);
    }
  std::vector<TurnSpan> spans;
  for (size_t turn = 0; turn < turns.size(); ++turn)
    spans.push_back(located[turn] ? *located[turn] : finder.find(turns[turn]));
  return spans;
}

}  // namespace convoy::data
