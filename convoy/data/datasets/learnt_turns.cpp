// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/learnt_turns.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/turn_marks.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kAssistant = "assistant";

bool overlaps(const text::Encoding& encoding, size_t token, const TurnSpan& turn) {
  return encoding.begins[token] < turn.end && encoding.ends[token] > turn.begin &&
         encoding.begins[token] < encoding.ends[token];
}

bool is_white_space(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// The turn's last special token, when only white space follows it within the turn.
std::optional<size_t> end_of_turn(const LearntTurns& turns, const TurnSpan& turn,
                                  const text::Encoding& encoding,
                                  const text::Tokenizer& tokenizer) {
  for (size_t token = encoding.ids.size(); token-- > 0;) {
    if (!overlaps(encoding, token, turn) || !tokenizer.is_special(encoding.ids[token])) continue;
    const auto end = encoding.ends[token];
    if (end > turn.end) continue;
    const auto rest = std::string_view(turns.text)
                          .substr(static_cast<size_t>(end), static_cast<size_t>(turn.end - end));
    if (is_white_space(rest)) return token;
    return std::nullopt;
  }
  return std::nullopt;
}

// `ends`: the tokens that close supervised turns, all of them in the mask.
void choose_ends(std::vector<uint8_t>& mask, const std::vector<size_t>& ends,
                 const text::Encoding& encoding, LearntEnds wanted) {
  if (wanted == LearntEnds::Turn || ends.empty()) return;
  std::set<int32_t> ids;
  for (const size_t end : ends) ids.insert(encoding.ids[end]);
  std::optional<size_t> last;
  for (size_t token = 0; token < mask.size(); ++token) {
    if (!ids.contains(encoding.ids[token])) continue;
    mask[token] = wanted == LearntEnds::All;
    last = token;
  }
  if (wanted == LearntEnds::Last) mask[*last] = 1;
}

// The message of each span; empty when the template does not write one span per answer.
std::vector<size_t> messages_of_spans(const ordered_json& messages, size_t num_spans) {
  std::vector<size_t> answers;
  for (size_t index = 0; index < messages.size(); ++index)
    if (messages[index].is_object() && messages[index].value("role", ordered_json()) == kAssistant)
      answers.push_back(index);
  return answers.size() == num_spans ? answers : std::vector<size_t>();
}

std::vector<TurnSpan> tagged_spans(const text::RenderedChat& chat, const ordered_json& messages,
                                   size_t skipped, const std::vector<size_t>& left_out) {
  const std::vector<size_t> owners = messages_of_spans(messages, chat.generation_spans.size());
  std::vector<TurnSpan> spans;
  for (size_t span = skipped; span < chat.generation_spans.size(); ++span) {
    const int64_t owner = owners.empty() ? -1 : static_cast<int64_t>(owners[span]);
    const bool is_left_out =
        owner >= 0 && std::find(left_out.begin(), left_out.end(), owners[span]) != left_out.end();
    if (!is_left_out)
      spans.push_back(
          {chat.generation_spans[span].first, chat.generation_spans[span].second, owner});
  }
  return spans;
}

}  // namespace

LearntTurns find_learnt_turns(const text::ChatTemplate& chat_template, const ordered_json& messages,
                              const ordered_json& variables, size_t first_message,
                              const std::vector<std::string>& roles, EmptyAnswers empty_answers) {
  int64_t renders = 0;
  const text::Conversation conversation = chat_template.read(messages, variables);
  const auto first = [&](size_t num_messages, bool add_generation_prompt) {
    ++renders;
    return conversation.render(num_messages, add_generation_prompt);
  };
  const text::RenderedChat chat = first(messages.size(), false);
  LearntTurns turns{.text = chat.text, .spans = {}, .by_tags = false, .renders = 0};
  const RenderWhole whole = [&](const ordered_json& others, const ordered_json& names) {
    ++renders;
    return chat_template.render(others, names, false).text;
  };
  turns.unwritten = find_unwritten(whole, messages, variables, turns.text, first_message);
  std::vector<size_t>& empty = turns.unwritten.answers;
  if (std::find(roles.begin(), roles.end(), kAssistant) == roles.end()) empty.clear();
  if (empty_answers == EmptyAnswers::Error && !empty.empty())
    throw DataError(fmt::format("message {} is an answer that the chat template does not write",
                                empty.front()));
  const std::vector<size_t> left_out =
      empty_answers == EmptyAnswers::Learn ? std::vector<size_t>() : empty;
  const ChatRenders means = {
      .other =
          [&](const ordered_json& other, bool add_generation_prompt) {
            ++renders;
            return chat_template.render(other, variables, add_generation_prompt).text;
          },
      .first = [&](size_t num_messages, bool prompt) { return first(num_messages, prompt).text; }};
  for (const std::string& role : roles) {
    std::vector<TurnSpan> found;
    if (role != kAssistant) {
      found = find_turns_of(role, means, messages, turns.text, first_message);
    } else if (chat_template.has_generation_tags()) {
      turns.by_tags = true;
      found = tagged_spans(
          chat, messages,
          first_message > 0 ? first(first_message, true).generation_spans.size() : 0, left_out);
    } else {
      found = find_assistant_turns(means, messages, turns.text, first_message, left_out);
    }
    turns.spans.insert(turns.spans.end(), found.begin(), found.end());
  }
  std::sort(turns.spans.begin(), turns.spans.end(),
            [](const TurnSpan& left, const TurnSpan& right) { return left.begin < right.begin; });
  turns.renders = renders;
  return turns;
}

std::vector<uint8_t> mask_of(const LearntTurns& turns, const text::Encoding& encoding,
                             const text::Tokenizer& tokenizer, LearntEnds ends) {
  std::vector<uint8_t> mask(encoding.ids.size(), 0);
  std::vector<size_t> closing;
  for (TurnSpan turn : turns.spans) {
    if (const auto token = end_of_turn(turns, turn, encoding, tokenizer)) {
      closing.push_back(*token);
      if (!turns.by_tags) turn.end = encoding.ends[*token];
    }
    for (size_t token = 0; token < mask.size(); ++token)
      if (overlaps(encoding, token, turn)) mask[token] = 1;
  }
  choose_ends(mask, closing, encoding, ends);
  // The first token has no predecessor, so it is never predicted.
  if (!mask.empty()) mask[0] = 0;
  return mask;
}

}  // namespace convoy::data
