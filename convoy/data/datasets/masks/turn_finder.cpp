// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/turn_finder.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

// A private-use character, which no text contains by chance.
constexpr std::string_view kProbe = "\xEE\x80\x9A";
constexpr std::string_view kTurnBlanks = " \t\r\n";

size_t common_prefix(std::string_view left, std::string_view right) {
  const auto [at, other] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<size_t>(at - left.begin());
}

// Start of the text that follows a turn. `at`: the position where two renderings with different
// following texts begin to differ. Both following texts may begin with the same mark or heading, so
// their start may lie before `at`.
size_t begin_of_next(std::string_view text, size_t at) {
  const size_t line = text.rfind('\n', at == 0 ? 0 : at - 1);
  const size_t line_begin = line == std::string_view::npos ? 0 : line + 1;
  const std::string_view common = text.substr(line_begin, at - line_begin);
  const bool has_letter = std::ranges::any_of(common, [](char letter) {
    return (letter & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(letter)) != 0;
  });
  if (!has_letter) return line_begin;
  const size_t begin = text.substr(0, at).find_last_of(" \t\r\n>]");
  return begin == std::string_view::npos ? at : begin + 1;
}

}  // namespace

void refuse_turn(size_t index) {
  throw DataError(
      fmt::format("the chat template writes message {} differently once others follow, so its "
                  "tokens cannot be told from the rest",
                  index),
      {.hint = "put {% generation %} tags around the assistant's text in the template, or "
               "supervise only the last turn"});
}

TurnSpan TurnFinder::find(size_t index) const {
  if (auto span = by_prefix(index)) return *span;
  if (auto span = by_probe(index)) return *span;
  if (auto span = by_closing(index)) return *span;
  refuse_turn(index);
}

// Locates the content by a letter before it and one behind it. The conversation up to the turn
// shows how the turn is closed.
std::optional<TurnSpan> TurnFinder::find_content(size_t index) const {
  const ordered_json& message = messages_[index];
  if (!message.contains("content") || !message["content"].is_string())
    throw DataError(fmt::format("message {} has no content that is a text, so its tokens cannot be "
                                "told from the rest",
                                index),
                    {.hint = "write its content as one string, or leave its role out of "
                             "data.roles_to_train"});
  const auto& content = message["content"].get_ref<const std::string&>();
  const size_t first = content.find_first_not_of(kTurnBlanks);
  if (first == std::string::npos) return std::nullopt;
  const size_t last = content.find_last_not_of(kTurnBlanks) + 1;
  const std::string opened = render_with_letter(messages_.size(), index, first);
  const std::string closed = render_with_letter(messages_.size(), index, last);
  const size_t begin = opened.find(kProbe);
  const size_t end = closed.find(kProbe);
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  if (end < begin || common_prefix(opened, full_) < begin || common_prefix(closed, full_) < end)
    refuse_turn(index);
  return TurnSpan{static_cast<int64_t>(begin),
                  static_cast<int64_t>(end + closing_length(index, last, end)),
                  static_cast<int64_t>(index)};
}

// Length of the closing of a turn in bytes. The closing is the text that the template writes behind
// the content of message `index`: in the whole conversation from `end` on, and also in the
// conversation that ends with this message. Returns 0 if the closing is unknown, because the
// template refuses the shorter conversation, writes the content elsewhere, or closes the
// conversation differently.
size_t TurnFinder::closing_length(size_t index, size_t content_end, size_t end) const {
  for (const bool is_followed : {false, true}) {
    try {
      std::optional<std::string> alone =
          render_with_letter(index + 1, index, content_end, is_followed);
      if (is_followed) alone = without_prompt(std::move(*alone), std::max<size_t>(index, 1));
      const size_t probe = alone ? alone->rfind(kProbe) : std::string::npos;
      if (probe == std::string::npos) continue;
      const std::string closing = alone->substr(probe + kProbe.size());
      if (!closing.empty() && full_.compare(end, closing.size(), closing) == 0)
        return closing.size();
    } catch (const DataError&) {
      continue;
    }
  }
  return 0;
}

// Renders the first `count` messages with a letter inserted into the content of message `index`.
std::string TurnFinder::render_with_letter(size_t count, size_t index, size_t at,
                                           bool add_generation_prompt) const {
  ordered_json probed(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count));
  probed[index]["content"].get_ref<std::string&>().insert(at, kProbe);
  return renders_.other(probed, add_generation_prompt);
}

// The turn begins where the generation prompt ends. The prompt may be longer than the turn's header
// (it may end with "<think>"). Then the turn begins where the two differ, if that position is in
// the prompt.
std::optional<size_t> TurnFinder::begin_by_prompt(size_t index) const {
  if (index == 0) return std::nullopt;
  const std::string before = renders_.first(index, true);
  if (full_.starts_with(before)) return before.size();
  const std::string unprompted = renders_.first(index, false);
  const size_t begin = common_prefix(before, full_);
  if (!before.starts_with(unprompted) || begin <= unprompted.size()) return std::nullopt;
  return begin;
}

std::optional<TurnSpan> TurnFinder::by_prefix(size_t index) const {
  const auto prompted = begin_by_prompt(index);
  if (!prompted) return std::nullopt;
  const size_t begin = *prompted;
  const bool last = index + 1 == messages_.size();
  std::string upto = last ? full_ : renders_.first(index + 1, false);
  if (!full_.starts_with(upto)) upto = first_followed(index + 1).value_or("");
  if (!full_.starts_with(upto) || upto.size() <= begin) return std::nullopt;
  return TurnSpan{static_cast<int64_t>(begin), static_cast<int64_t>(upto.size()),
                  static_cast<int64_t>(index)};
}

std::optional<std::string> TurnFinder::turn_header(size_t index) const {
  const size_t count = std::max<size_t>(index, 1);
  const std::string with = renders_.first(count, true);
  const std::string without = renders_.first(count, false);
  const size_t common = common_prefix(with, without);
  if (common == with.size()) return std::nullopt;
  // A template may write a closing text behind a conversation that does not continue.
  return with.substr(common == without.size() ? common : begin_of_next(with, common));
}

std::optional<std::string> TurnFinder::without_prompt(std::string text, size_t index) const {
  const auto header = turn_header(index);
  if (!header || !text.ends_with(*header)) return std::nullopt;
  text.resize(text.size() - header->size());
  return text;
}

std::optional<std::string> TurnFinder::first_followed(size_t num_messages) const {
  try {
    return without_prompt(renders_.first(num_messages, true), num_messages - 1);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// Renders the first `count` messages with a letter before or after the content of message `index`.
std::optional<std::string> TurnFinder::render_probed(size_t count, size_t index,
                                                     bool at_end) const {
  const ordered_json& message = messages_[index];
  if (!message.contains("content") || !message["content"].is_string()) return std::nullopt;
  const size_t end = message["content"].get_ref<const std::string&>().size();
  return render_with_letter(count, index, at_end ? end : 0);
}

// The start of the turn: by the generation prompt, or else the last header before the content.
std::optional<size_t> TurnFinder::probed_begin(size_t index) const {
  if (const auto begin = begin_by_prompt(index)) return begin;
  const auto probed = render_probed(messages_.size(), index, false);
  const auto header = turn_header(index);
  if (!probed || !header) return std::nullopt;
  const size_t content = probed->find(kProbe);
  if (content == std::string::npos || content > full_.size() ||
      probed->compare(0, content, full_, 0, content) != 0)
    return std::nullopt;
  const size_t found = full_.rfind(*header, content);
  if (found == std::string::npos || found + header->size() > content) return std::nullopt;
  return found + header->size();
}

// Locates the turn by a letter behind its content. The turn closes there as it does at the end of
// the conversation, or before another turn.
std::optional<TurnSpan> TurnFinder::by_probe(size_t index) const {
  const auto begin = probed_begin(index);
  const auto probed = render_probed(messages_.size(), index, true);
  if (!begin || !probed || probed->find(kProbe) == std::string::npos) return std::nullopt;
  const size_t content_end = common_prefix(*probed, full_);
  if (content_end < *begin) return std::nullopt;
  const auto& content = messages_[index]["content"].get_ref<const std::string&>();
  const size_t closing = closing_length(index, content.size(), content_end);
  if (closing == 0) return std::nullopt;
  return TurnSpan{static_cast<int64_t>(*begin), static_cast<int64_t>(content_end + closing),
                  static_cast<int64_t>(index)};
}

// Locates a turn without content (tool calls only): it ends at the first text that closes every
// turn, provided that the message itself does not contain that text.
std::optional<TurnSpan> TurnFinder::by_closing(size_t index) const {
  if (index == 0) return std::nullopt;
  const auto begin = probed_begin(index);
  if (!begin) return std::nullopt;
  ordered_json plain(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(index));
  plain.push_back({{"role", "assistant"}, {"content", kProbe}});
  const std::string alone = renders_.other(plain, false);
  const size_t probe = alone.rfind(kProbe);
  if (probe == std::string::npos) return std::nullopt;
  const std::string closing = alone.substr(probe + kProbe.size());
  const size_t last = closing.find_last_not_of(kTurnBlanks);
  if (last == std::string::npos) return std::nullopt;
  const std::string mark = closing.substr(0, last + 1);
  if (messages_[index].dump().find(mark) != std::string::npos) return std::nullopt;
  const size_t found = full_.find(closing, *begin);
  if (found == std::string::npos) return std::nullopt;
  return TurnSpan{static_cast<int64_t>(*begin), static_cast<int64_t>(found + closing.size()),
                  static_cast<int64_t>(index)};
}

}  // namespace convoy::data
