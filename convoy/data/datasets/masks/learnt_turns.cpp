// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/learnt_turns.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/chats/chat_roles.h"
#include "convoy/data/datasets/masks/turn_marks.h"

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

// Indices of the special tokens that lie completely in the span, in order.
std::vector<size_t> special_tokens_in(const TurnSpan& span, const text::Encoding& encoding,
                                      const text::Tokenizer& tokenizer) {
  std::vector<size_t> found;
  for (size_t token = 0; token < encoding.ids.size(); ++token)
    if (encoding.begins[token] >= span.begin && encoding.ends[token] <= span.end &&
        encoding.begins[token] < encoding.ends[token] && tokenizer.is_special(encoding.ids[token]))
      found.push_back(token);
  return found;
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

// The token directly behind a turn if it is the tokenizer's EOS, such as the mark of the next role
// in GLM's templates.
std::optional<size_t> eos_behind(const TurnSpan& turn, const text::Encoding& encoding,
                                 const text::Tokenizer& tokenizer) {
  if (turn.is_tagged) return std::nullopt;
  for (size_t token = 0; token < encoding.ids.size(); ++token)
    if (encoding.begins[token] == turn.end && encoding.ends[token] > turn.end)
      return encoding.ids[token] == tokenizer.eos_id() ? std::optional(token) : std::nullopt;
  return std::nullopt;
}

// Applies `wanted` to the mask. `ends`: indices of the tokens that close supervised turns; the mask
// contains all of them.
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

// Index of the message of each span; empty when the template does not write one span per answer.
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
          {chat.generation_spans[span].first, chat.generation_spans[span].second, owner, true});
  }
  return spans;
}

bool holds(const TurnSpan& span, const TextMark& mark) {
  const auto position = static_cast<int64_t>(mark.position);
  return mark.opens ? span.begin <= position && position < span.end
                    : span.begin < position && position <= span.end;
}

// The text of a message whose place in the rendering is unknown; empty for a short text, which may
// occur elsewhere by chance.
std::string text_without_place(const ordered_json& message) {
  constexpr size_t kTellingBytes = 16;
  const auto content = message.find("content");
  if (content == message.end() || !content->is_string()) return "";
  std::string text(trimmed(content->get_ref<const std::string&>(), " \t\r\n"));
  return text.size() < kTellingBytes ? "" : text;
}

// Throws DataError for a turn that contains a text of another message, or lacks its own text.
void require_own_texts(const LearntTurns& turns, const ReadableChat& chat) {
  const ordered_json& messages = chat.messages;
  std::vector<bool> has_place(messages.size());
  for (const TextMark& mark : chat.texts.marks) has_place[mark.message] = true;
  for (const TurnSpan& span : turns.spans) {
    // A tagged span does not say which message it belongs to, so any assistant message may own it.
    const auto owns = [&](size_t message) {
      return span.is_tagged ? role_of(messages[message]) == kAssistant
                            : span.message == static_cast<int64_t>(message);
    };
    bool holds_own = false;
    for (const TextMark& mark : chat.texts.marks) {
      if (!holds(span, mark)) continue;
      if (!owns(mark.message)) refuse_turn(mark.message);
      holds_own = true;
    }
    const auto own = static_cast<size_t>(span.message);
    if (!span.is_tagged && has_place[own] && !holds_own) refuse_turn(own);
    const std::string_view text =
        std::string_view(turns.text)
            .substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
    for (size_t message = 0; message < messages.size(); ++message) {
      if (has_place[message] || owns(message)) continue;
      const std::string other = text_without_place(messages[message]);
      if (!other.empty() && text.find(other) != std::string_view::npos) refuse_turn(message);
    }
  }
}

ChatRenders renders_of(const text::ChatTemplate& chat_template, const ReadableChat& chat,
                       const ordered_json& variables, int64_t& count) {
  return {.other =
              [&](const ordered_json& other, bool add_generation_prompt) {
                ++count;
                return chat_template.render(other, variables, add_generation_prompt).text;
              },
          .first =
              [&](size_t num_messages, bool add_generation_prompt) {
                ++count;
                return chat.conversation.render(num_messages, add_generation_prompt).text;
              }};
}

// The end of the message's last text in the rendering; empty if its place is unknown.
std::optional<size_t> content_end_of(const ReadableChat& chat, size_t message) {
  std::optional<size_t> end;
  for (const TextMark& mark : chat.texts.marks)
    if (mark.message == message && !mark.opens) end = mark.position;
  return end;
}

// The conversation up to the returned position is written the same when another turn, of the
// assistant or of the user, follows the message. Renderings that differ before `from` do not count.
size_t shared_with_followed(const ChatRenders& means, const ReadableChat& chat, size_t message,
                            size_t from) {
  const std::string& text = chat.rendered.text;
  const auto behind = chat.messages.begin() + static_cast<std::ptrdiff_t>(message) + 1;
  const ordered_json upto(chat.messages.begin(), behind);
  ordered_json with_user = upto;
  const auto user = std::ranges::find_if(
      upto, [](const ordered_json& other) { return role_of(other) == "user"; });
  with_user.push_back(user == upto.end() ? ordered_json{{"role", "user"}, {"content", "question"}}
                                         : *user);
  size_t shared = text.size();
  for (const bool is_of_user : {false, true}) {
    try {
      const std::string other = means.other(is_of_user ? with_user : upto, !is_of_user);
      const auto at = static_cast<size_t>(std::ranges::mismatch(text, other).in1 - text.begin());
      if (at >= from) shared = std::min(shared, at);
    } catch (const DataError&) {
      continue;  // the template refuses such a conversation
    }
  }
  return shared;
}

// The end of the special tokens that close a turn without calls: they follow its content with
// nothing but white space between, and are there whichever turn follows. A further token with text
// directly behind it opens a header. Empty if there is no such token.
std::optional<size_t> own_end_behind(size_t message, size_t content_end, const ChatRenders& means,
                                     const ReadableChat& chat, const text::Encoding& encoding,
                                     const text::Tokenizer& tokenizer) {
  const std::string_view text = chat.rendered.text;
  const size_t shared = shared_with_followed(means, chat, message, content_end);
  const TurnSpan behind{static_cast<int64_t>(content_end), static_cast<int64_t>(text.size())};
  const std::vector<size_t> closing = special_tokens_in(behind, encoding, tokenizer);
  std::optional<size_t> own_end;
  size_t at = content_end;
  for (size_t place = 0; place < closing.size(); ++place) {
    const auto begin = static_cast<size_t>(encoding.begins[closing[place]]);
    const auto end = static_cast<size_t>(encoding.ends[closing[place]]);
    if (!is_white_space(text.substr(at, begin - at)) || end > shared) break;
    const bool touches_token = place + 1 < closing.size() &&
                               static_cast<size_t>(encoding.begins[closing[place + 1]]) == end;
    const bool touches_text = !touches_token && !is_white_space(text.substr(end, 1));
    if (own_end && touches_text) break;
    own_end = at = end;
  }
  return own_end;
}

// Ends the last turn, and each other turn that closes like it, with its own end tokens. Returns
// false if the last turn has none, or ends with them anyway.
bool end_with_own_tokens(LearntTurns& turns, const ChatRenders& means, const ReadableChat& chat,
                         const text::Encoding& encoding, const text::Tokenizer& tokenizer) {
  TurnSpan& last = turns.spans.back();
  const auto message = static_cast<size_t>(last.message);
  const auto calls = chat.messages[message].find("tool_calls");
  if (calls != chat.messages[message].end() && !calls->empty()) return false;
  const auto content_end = content_end_of(chat, message);
  if (!content_end) return false;
  const auto own_end = own_end_behind(message, *content_end, means, chat, encoding, tokenizer);
  if (!own_end || static_cast<int64_t>(*own_end) >= last.end) return false;
  const std::string_view text = turns.text;
  const std::string_view closing = text.substr(*content_end, *own_end - *content_end);
  for (TurnSpan& span : turns.spans) {
    if (span.message < 0) continue;
    const auto end = content_end_of(chat, static_cast<size_t>(span.message));
    if (!end || !text.substr(*end).starts_with(closing)) continue;
    span.end = std::min(span.end, static_cast<int64_t>(*end + closing.size()));
  }
  return true;
}

}  // namespace

LearntTurns find_learnt_turns(const text::ChatTemplate& chat_template, const ReadableChat& chat,
                              const ordered_json& variables, size_t first_message,
                              const std::vector<std::string>& roles, EmptyAnswers empty_answers) {
  int64_t renders = 0;
  const ordered_json& messages = chat.messages;
  LearntTurns turns{.text = chat.rendered.text, .spans = {}, .by_tags = false, .renders = 0};
  const RenderWhole whole = [&](const ordered_json& others, const ordered_json& names) {
    ++renders;
    return chat_template.render(others, names, false).text;
  };
  turns.unwritten = find_unwritten(whole, messages, variables, turns.text, first_message);
  std::vector<size_t>& empty = turns.unwritten.answers;
  if (std::find(roles.begin(), roles.end(), kAssistant) == roles.end()) empty.clear();
  if (empty_answers == EmptyAnswers::Error && !empty.empty())
    throw DataError(
        fmt::format("message {} is an answer that the chat template does not write", empty.front()),
        {.hint = "write a text into it, or set data.empty_answers: skip"});
  const std::vector<size_t> left_out =
      empty_answers == EmptyAnswers::Learn ? std::vector<size_t>() : empty;
  const ChatRenders means = renders_of(chat_template, chat, variables, renders);
  for (const std::string& role : roles) {
    std::vector<TurnSpan> found;
    if (role != kAssistant) {
      found = find_turns_of(role, means, messages, turns.text, first_message);
    } else if (chat_template.has_generation_tags()) {
      turns.by_tags = true;
      found = tagged_spans(
          chat.rendered, messages,
          first_message > 0 ? chat.conversation.render(first_message, true).generation_spans.size()
                            : 0,
          left_out);
    } else {
      found =
          find_assistant_turns(means, messages, turns.text, chat.texts, first_message, left_out);
    }
    turns.spans.insert(turns.spans.end(), found.begin(), found.end());
  }
  std::sort(turns.spans.begin(), turns.spans.end(),
            [](const TurnSpan& left, const TurnSpan& right) { return left.begin < right.begin; });
  turns.renders = renders;
  require_own_texts(turns, chat);
  return turns;
}

void leave_out_end_of_conversation(LearntTurns& turns, const text::ChatTemplate& chat_template,
                                   const ReadableChat& chat, const ordered_json& variables,
                                   const text::Encoding& encoding,
                                   const text::Tokenizer& tokenizer) {
  if (turns.spans.empty() || turns.spans.back().is_tagged) return;
  TurnSpan& last = turns.spans.back();
  const auto message = static_cast<size_t>(last.message);
  TurnSpan behind = last;
  if (const auto content_end = content_end_of(chat, message))
    behind.begin = static_cast<int64_t>(*content_end);
  const std::vector<size_t> ends = special_tokens_in(behind, encoding, tokenizer);
  const auto rest_from = [&](int64_t from, int64_t to) {
    return std::string_view(turns.text)
        .substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
  };
  const bool is_plain =
      ends.size() == 1 && is_white_space(rest_from(encoding.ends[ends[0]], last.end));
  if (ends.empty() || is_plain) return;
  int64_t renders = 0;
  const ChatRenders means = renders_of(chat_template, chat, variables, renders);
  if (end_with_own_tokens(turns, means, chat, encoding, tokenizer)) return;
  if (message + 1 != chat.messages.size()) return;
  const auto followed =
      TurnFinder(means, chat.messages, turns.text).first_followed(chat.messages.size());
  if (!followed || !turns.text.starts_with(*followed)) return;
  const auto own_end = static_cast<int64_t>(followed->size());
  const bool has_own_end = std::ranges::any_of(ends, [&](size_t token) {
    return encoding.ends[token] <= own_end &&
           is_white_space(rest_from(encoding.ends[token], own_end));
  });
  if (has_own_end) last.end = own_end;
}

std::vector<uint8_t> mask_of(const LearntTurns& turns, const text::Encoding& encoding,
                             const text::Tokenizer& tokenizer, LearntEnds ends) {
  std::vector<uint8_t> mask(encoding.ids.size(), 0);
  std::vector<size_t> closing;
  for (TurnSpan turn : turns.spans) {
    if (const auto token = end_of_turn(turns, turn, encoding, tokenizer)) {
      closing.push_back(*token);
      if (!turn.is_tagged) turn.end = encoding.ends[*token];
    } else if (const auto behind = eos_behind(turn, encoding, tokenizer)) {
      closing.push_back(*behind);
      turn.end = encoding.ends[*behind];
    }
    for (size_t token = 0; token < mask.size(); ++token)
      if (overlaps(encoding, token, turn)) mask[token] = 1;
  }
  choose_ends(mask, closing, encoding, ends);
  // The first token has no predecessor, so it is no target of the loss.
  if (!mask.empty()) mask[0] = 0;
  return mask;
}

}  // namespace convoy::data
