// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/turn_finder.h"

#include <algorithm>
#include <string_view>

#include "convoy/base/error.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

// A letter of no language, so that no text holds it by chance.
constexpr std::string_view kProbe = "\xEE\x80\x9A";

size_t common_prefix(std::string_view left, std::string_view right) {
  const auto [at, other] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<size_t>(at - left.begin());
}

}  // namespace

TurnSpan TurnFinder::find(size_t index) const {
  if (auto span = by_prefix(index)) return *span;
  if (auto span = by_probe(index)) return *span;
  if (auto span = by_closing(index)) return *span;
  throw DataError(
      fmt::format("the chat template writes message {} differently once others follow, so its "
                  "tokens cannot be told from the rest",
                  index),
      {.hint = "put {% generation %} tags around the assistant's text in the template, or "
               "supervise only the last turn"});
}

std::string TurnFinder::render_first(size_t count, bool add_generation_prompt) const {
  const ordered_json part(messages_.begin(),
                          messages_.begin() + static_cast<std::ptrdiff_t>(count));
  return render_(part, add_generation_prompt);
}

std::optional<TurnSpan> TurnFinder::by_prefix(size_t index) const {
  if (index == 0) return std::nullopt;
  const std::string before = render_first(index, true);
  size_t begin = before.size();
  if (!full_.starts_with(before)) {
    // A generation prompt may go on further than the turn does ("<think>"): the turn begins where they part, if that
    // is within the prompt.
    const std::string without_prompt = render_first(index, false);
    begin = common_prefix(before, full_);
    if (!before.starts_with(without_prompt) || begin <= without_prompt.size()) return std::nullopt;
  }
  const bool last = index + 1 == messages_.size();
  const std::string upto = last ? full_ : render_first(index + 1, false);
  if (!full_.starts_with(upto) || upto.size() <= begin) return std::nullopt;
  return TurnSpan{static_cast<int64_t>(begin), static_cast<int64_t>(upto.size()),
                  static_cast<int64_t>(index)};
}

std::optional<std::string> TurnFinder::turn_header(size_t index) const {
  const size_t count = std::max<size_t>(index, 1);
  const std::string with = render_first(count, true);
  const std::string without = render_first(count, false);
  if (!with.starts_with(without) || with.size() == without.size()) return std::nullopt;
  return with.substr(without.size());
}

// The first `count` messages with a letter put before or after the content of message `index`.
std::optional<std::string> TurnFinder::render_probed(size_t count, size_t index,
                                                     bool at_end) const {
  ordered_json probed(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count));
  if (!probed[index].contains("content") || !probed[index]["content"].is_string())
    return std::nullopt;
  const std::string text = probed[index]["content"].get<std::string>();
  const std::string probe(kProbe);
  probed[index]["content"] = at_end ? text + probe : probe + text;
  return render_(probed, false);
}

// The generation prompt ends where the turn begins; else the turn's header is the last one before its content.
std::optional<size_t> TurnFinder::probed_begin(size_t index) const {
  if (index > 0) {
    const std::string before = render_first(index, true);
    if (full_.starts_with(before)) return before.size();
  }
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

// A letter after the content shows where the content ends; there the turn closes as it does when it is the last one.
std::optional<TurnSpan> TurnFinder::by_probe(size_t index) const {
  const auto begin = probed_begin(index);
  const auto probed = render_probed(messages_.size(), index, true);
  const auto alone = render_probed(index + 1, index, true);
  if (!begin || !probed || !alone) return std::nullopt;
  const size_t probe = alone->rfind(kProbe);
  if (probe == std::string::npos || probed->find(kProbe) == std::string::npos) return std::nullopt;
  const std::string closing = alone->substr(probe + kProbe.size());
  const size_t content_end = common_prefix(*probed, full_);
  if (closing.empty() || content_end < *begin ||
      full_.compare(content_end, closing.size(), closing) != 0)
    return std::nullopt;
  return TurnSpan{static_cast<int64_t>(*begin), static_cast<int64_t>(content_end + closing.size()),
                  static_cast<int64_t>(index)};
}

// A turn without content (tool calls only) ends at the first text that closes every turn, provided that the message
// itself does not hold that text.
std::optional<TurnSpan> TurnFinder::by_closing(size_t index) const {
  if (index == 0) return std::nullopt;
  const auto begin = probed_begin(index);
  if (!begin) return std::nullopt;
  ordered_json plain(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(index));
  plain.push_back({{"role", "assistant"}, {"content", kProbe}});
  const std::string alone = render_(plain, false);
  const size_t probe = alone.rfind(kProbe);
  if (probe == std::string::npos) return std::nullopt;
  const std::string closing = alone.substr(probe + kProbe.size());
  const size_t last = closing.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return std::nullopt;
  const std::string mark = closing.substr(0, last + 1);
  if (messages_[index].dump().find(mark) != std::string::npos) return std::nullopt;
  const size_t found = full_.find(closing, *begin);
  if (found == std::string::npos) return std::nullopt;
  return TurnSpan{static_cast<int64_t>(*begin), static_cast<int64_t>(found + closing.size()),
                  static_cast<int64_t>(index)};
}

}  // namespace convoy::data
