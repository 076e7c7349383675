// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/assistant_spans.h"

#include <string_view>

#include "convoy/data/turn_marks.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

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
                                    const ordered_json& messages, const ordered_json& variables,
                                    size_t first_message) {
  int64_t renders = 0;
  const auto render = [&](const ordered_json& part, bool add_generation_prompt) {
    ++renders;
    return chat_template.render(part, variables, add_generation_prompt);
  };
  text::RenderedChat chat = render(messages, false);
  AssistantSpans spans{.text = std::move(chat.text), .turns = {}, .by_tags = false, .renders = 0};
  if (chat_template.has_generation_tags()) {
    spans.by_tags = true;
    size_t skipped = 0;
    if (first_message > 0) {
      const ordered_json prompt(messages.begin(),
                                messages.begin() + static_cast<std::ptrdiff_t>(first_message));
      skipped = render(prompt, true).generation_spans.size();
    }
    for (size_t span = skipped; span < chat.generation_spans.size(); ++span)
      spans.turns.push_back({chat.generation_spans[span].first, chat.generation_spans[span].second,
                             static_cast<int64_t>(span)});
  } else {
    spans.turns =
        find_turns([&](const ordered_json& part, bool prompt) { return render(part, prompt).text; },
                   messages, spans.text, first_message);
  }
  spans.renders = renders;
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
