// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/assistant_spans.h"

#include <algorithm>
#include <optional>
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

bool is_assistant(const ordered_json& message) {
  return message.is_object() && message.contains("role") && message["role"] == "assistant";
}

// The assistant turns of one conversation, located in `full`.
class TurnFinder {
 public:
  TurnFinder(const text::ChatTemplate& chat_template, const ordered_json& messages,
             const ordered_json& tools, const std::string& full)
      : template_(chat_template), messages_(messages), tools_(tools), full_(full) {}

  TurnSpan find(size_t index) const {
    if (auto span = by_prefix(index)) return *span;
    if (auto span = by_probe(index)) return *span;
    throw DataError(
        fmt::format("the chat template writes message {} differently once others follow, so its "
                    "tokens cannot be told from the rest",
                    index),
        {.hint = "put {% generation %} tags around the assistant's text in the template, or "
                 "supervise only the last turn"});
  }

 private:
  std::string render_first(size_t count, bool add_generation_prompt) const {
    const ordered_json part(messages_.begin(),
                            messages_.begin() + static_cast<std::ptrdiff_t>(count));
    return template_.render(part, tools_, add_generation_prompt).text;
  }

  std::optional<TurnSpan> by_prefix(size_t index) const;
  std::optional<TurnSpan> by_probe(size_t index) const;
  std::optional<std::string> turn_header(size_t index) const;
  std::optional<std::string> render_probed(size_t index, bool at_end) const;

  const text::ChatTemplate& template_;
  const ordered_json& messages_;
  const ordered_json& tools_;
  const std::string& full_;
};

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

// What the template writes to open an assistant turn: the generation prompt.
std::optional<std::string> TurnFinder::turn_header(size_t index) const {
  const size_t count = std::max<size_t>(index, 1);
  const std::string with = render_first(count, true);
  const std::string without = render_first(count, false);
  if (!with.starts_with(without) || with.size() == without.size()) return std::nullopt;
  return with.substr(without.size());
}

// The conversation with a letter put before or after the content of one message.
std::optional<std::string> TurnFinder::render_probed(size_t index, bool at_end) const {
  ordered_json probed = messages_;
  ordered_json& content = probed[index]["content"];
  if (!content.is_string()) return std::nullopt;
  const std::string text = content.get<std::string>();
  const std::string probe(kProbe);
  content = at_end ? text + probe : probe + text;
  return template_.render(probed, tools_, false).text;
}

// The content lies between the places where a letter before and a letter after it show. The turn begins at the header
// before it and ends where the next message's own text could begin: at the first letter the following header shares.
std::optional<TurnSpan> TurnFinder::by_probe(size_t index) const {
  const auto probed_begin = render_probed(index, false);
  const auto probed_end = render_probed(index, true);
  if (!probed_begin || !probed_end) return std::nullopt;
  const size_t content_begin = probed_begin->find(kProbe);
  const size_t content_end = probed_end->find(kProbe);
  if (content_begin == std::string::npos || content_end == std::string::npos ||
      content_end < content_begin || content_end > full_.size() ||
      !probed_begin->starts_with(full_.substr(0, content_begin)) ||
      !probed_end->starts_with(full_.substr(0, content_end)))
    return std::nullopt;
  const auto header = turn_header(index);
  if (!header) return std::nullopt;
  const size_t header_begin = full_.rfind(*header, content_begin);
  if (header_begin == std::string::npos || header_begin + header->size() > content_begin)
    return std::nullopt;
  // After the content the turn closes as the same turn does when it is the last one.
  const std::string upto = render_first(index + 1, false);
  const std::string content = full_.substr(content_begin, content_end - content_begin);
  const size_t own = upto.rfind(content);
  if (own == std::string::npos) return std::nullopt;
  const std::string closing = upto.substr(own + content.size());
  if (closing.empty() || full_.compare(content_end, closing.size(), closing) != 0)
    return std::nullopt;
  return TurnSpan{static_cast<int64_t>(header_begin + header->size()),
                  static_cast<int64_t>(content_end + closing.size()), static_cast<int64_t>(index)};
}

bool overlaps(const text::Encoding& encoding, size_t token, const TurnSpan& turn) {
  return encoding.begins[token] < turn.end && encoding.ends[token] > turn.begin &&
         encoding.begins[token] < encoding.ends[token];
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// The end of the turn's last special token, when nothing but white space follows it within the turn.
int64_t end_of_turn(const AssistantSpans& spans, const TurnSpan& turn,
                    const text::Encoding& encoding, const text::Tokenizer& tokenizer) {
  for (size_t token = encoding.ids.size(); token-- > 0;) {
    if (!overlaps(encoding, token, turn) || !tokenizer.is_special(encoding.ids[token])) continue;
    const auto end = encoding.ends[token];
    if (end > turn.end) continue;
    const auto rest = std::string_view(spans.text)
                          .substr(static_cast<size_t>(end), static_cast<size_t>(turn.end - end));
    return is_blank(rest) ? end : turn.end;
  }
  return turn.end;
}

}  // namespace

AssistantSpans find_assistant_spans(const text::ChatTemplate& chat_template,
                                    const ordered_json& messages, const ordered_json& tools,
                                    size_t first_message) {
  text::RenderedChat chat = chat_template.render(messages, tools, false);
  AssistantSpans spans{.text = std::move(chat.text), .turns = {}, .by_tags = false};
  if (chat_template.has_generation_tags()) {
    spans.by_tags = true;
    size_t skipped = 0;
    if (first_message > 0) {
      const ordered_json prompt(messages.begin(),
                                messages.begin() + static_cast<std::ptrdiff_t>(first_message));
      skipped = chat_template.render(prompt, tools, true).generation_spans.size();
    }
    for (size_t span = skipped; span < chat.generation_spans.size(); ++span)
      spans.turns.push_back({chat.generation_spans[span].first, chat.generation_spans[span].second,
                             static_cast<int64_t>(span)});
    return spans;
  }
  const TurnFinder finder(chat_template, messages, tools, spans.text);
  for (size_t index = first_message; index < messages.size(); ++index)
    if (is_assistant(messages[index])) spans.turns.push_back(finder.find(index));
  return spans;
}

std::vector<uint8_t> mask_of(const AssistantSpans& spans, const text::Encoding& encoding,
                             const text::Tokenizer& tokenizer) {
  std::vector<uint8_t> mask(encoding.ids.size(), 0);
  for (TurnSpan turn : spans.turns) {
    if (!spans.by_tags) turn.end = end_of_turn(spans, turn, encoding, tokenizer);
    for (size_t token = 0; token < mask.size(); ++token)
      if (overlaps(encoding, token, turn)) mask[token] = 1;
  }
  // Nothing precedes the first token, so nothing predicts it.
  if (!mask.empty()) mask[0] = 0;
  return mask;
}

}  // namespace convoy::data
