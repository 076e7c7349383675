// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encode_sample.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/chats/readable_chat.h"
#include "convoy/data/datasets/chats/unwritten.h"
#include "convoy/data/datasets/encoding/policy_line.h"
#include "convoy/data/datasets/masks/learnt_turns.h"
#include "convoy/data/datasets/masks/turn_choice.h"
#include "convoy/data/datasets/masks/turn_weights.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;
using Kind = Sample::Kind;

// Prompt and completion as one list of messages. `joined` stores the list when the sample has two
// lists.
const ordered_json& whole_conversation(const Sample& sample, ordered_json& joined) {
  if (sample.kind != Kind::ChatPromptCompletion) return sample.messages;
  joined = sample.messages;
  joined.insert(joined.end(), sample.completion_messages.begin(), sample.completion_messages.end());
  return joined;
}

const text::ChatTemplate& required(const text::ChatTemplate* chat_template) {
  if (chat_template == nullptr)
    throw DataError("the row is a conversation, but the model has no chat template",
                    {.hint = "put a chat_template.jinja into the model folder or name one with "
                             "data.template_path"});
  return *chat_template;
}

// Calls `work` and adds the row's place to an error that it throws. The error's own message, such
// as a line of the template, stays.
template <class Work>
auto in_row(const Sample& sample, Work work) {
  try {
    return work();
  } catch (const DataError& error) {
    std::string message = error.what();
    const ErrorLocation& location = error.location();
    if (!location.file.empty())
      message = location.line > 0 ? fmt::format("{}:{}: {}", location.file, location.line, message)
                                  : fmt::format("{}: {}", location.file, message);
    if (sample.line == 0 && sample.index >= 0)
      message = fmt::format("row {}: {}", sample.index, message);
    throw DataError(message, {.file = sample.file, .line = sample.line, .hint = location.hint});
  }
}

EncodedRow supervised_from(EncodedRow row, size_t first, int64_t source_index) {
  row.source_index = source_index;
  row.supervised.assign(row.ids.size(), 0);
  for (size_t token = std::max<size_t>(first, 1); token < row.ids.size(); ++token)
    row.supervised[token] = 1;
  return row;
}

// Number of tokens with which both lists begin.
size_t common_tokens(const std::vector<int32_t>& prompt, const std::vector<int32_t>& whole) {
  const auto [at, other] = std::mismatch(prompt.begin(), prompt.end(), whole.begin(), whole.end());
  return static_cast<size_t>(at - prompt.begin());
}

size_t first_supervised(const EncodedRow& row) {
  return static_cast<size_t>(std::find(row.supervised.begin(), row.supervised.end(), uint8_t{1}) -
                             row.supervised.begin());
}

RenderWhole whole_text_by(const text::ChatTemplate& chat_template) {
  return [&chat_template](const ordered_json& messages, const ordered_json& variables) {
    return chat_template.render(messages, variables, false).text;
  };
}

RenderWhole prompt_text_by(const text::ChatTemplate& chat_template) {
  return [&chat_template](const ordered_json& messages, const ordered_json& variables) {
    return chat_template.render(messages, variables, true).text;
  };
}

void note_unwritten(EncodedRow& row, const Unwritten& unwritten) {
  row.tools_unread = unwritten.tools;
  row.documents_unread = unwritten.documents;
  row.calls_unread = unwritten.calls;
  row.reasoning_unread = unwritten.reasoning;
}

// Number of messages before the completion; 0 when the row marks none.
size_t num_prompt_messages(const Sample& sample) {
  return sample.kind == Kind::ChatPromptCompletion ? sample.messages.size() : 0;
}

// Sets the weight of the supervised tokens that `tokens` marks with 1.
void set_weight(EncodedRow& row, const std::vector<uint8_t>& tokens, double weight) {
  for (size_t token = 0; token < tokens.size(); ++token) {
    if (tokens[token] == 0 || row.supervised[token] == 0) continue;
    if (weight == 0) {
      row.supervised[token] = 0;
      continue;
    }
    row.weights.resize(row.ids.size(), 1.0F);
    row.weights[token] = static_cast<float>(weight);
  }
}

}  // namespace

bool is_chat(const Sample& sample) {
  return sample.kind == Kind::Chat || sample.kind == Kind::ChatPromptCompletion;
}

SampleEncoder::SampleEncoder(const text::Tokenizer& tokenizer,
                             const text::ChatTemplate* chat_template, Supervision supervision)
    : tokenizer_(tokenizer), chat_template_(chat_template), supervision_(std::move(supervision)) {}

// Adds the tokenizer's prefix tokens, but never its suffix: the caller decides on EOS.
EncodedRow SampleEncoder::plain_row(const std::string& text) const {
  EncodedRow row{.ids = tokenizer_.encode(text, text::SpecialTokens::Add).ids, .supervised = {}};
  std::vector<int32_t>& ids = row.ids;
  if (tokenizer_.adds_eos() && !ids.empty()) ids.pop_back();
  row.own_bos =
      tokenizer_.adds_bos() && ids.size() > 1 && ids[0] == tokenizer_.bos_id() && ids[0] == ids[1];
  if (row.own_bos) ids.erase(ids.begin());
  return row;
}

// Adds no special tokens: the template writes BOS when the model needs one.
text::Encoding SampleEncoder::chat_encoding(const std::string& text) const {
  return tokenizer_.encode(text, text::SpecialTokens::Omit);
}

bool SampleEncoder::begins_with_bos(const std::vector<int32_t>& ids) const {
  return tokenizer_.adds_bos() && !ids.empty() && ids[0] == tokenizer_.bos_id();
}

void SampleEncoder::append_eos(std::vector<int32_t>& ids) const {
  const auto eos = tokenizer_.eos_id();
  if (eos && (ids.empty() || ids.back() != *eos)) ids.push_back(*eos);
}

EncodedRow SampleEncoder::encode_text(const Sample& sample) const {
  EncodedRow row = plain_row(sample.text);
  append_eos(row.ids);
  row = supervised_from(std::move(row), 1, sample.index);
  if (sample.text.empty()) skip_empty_answer(row, "text");
  return row;
}

// Applies the policy for an empty answer, where only an end token would be supervised.
void SampleEncoder::skip_empty_answer(EncodedRow& row, const char* answer) const {
  if (supervision_.empty_answers == EmptyAnswers::Learn) return;
  if (supervision_.empty_answers == EmptyAnswers::Error)
    throw DataError(fmt::format("the {} is empty", answer),
                    {.hint = "write it, or set data.empty_answers: skip"});
  row.empty_answer = true;
  std::fill(row.supervised.begin(), row.supervised.end(), uint8_t{0});
}

// Tokenises both texts as one. If a token crosses the boundary, the completion begins with that
// token.
EncodedRow SampleEncoder::encode_prompt_completion(const Sample& sample) const {
  EncodedRow row = plain_row(sample.prompt + sample.completion);
  append_eos(row.ids);
  if (learns_every_token()) return supervised_from(std::move(row), 1, sample.index);
  const std::vector<int32_t> prompt = plain_row(sample.prompt).ids;
  const size_t first = common_tokens(prompt, row.ids);
  row = supervised_from(std::move(row), first, sample.index);
  row.crosses_seam = first < prompt.size();
  if (trimmed(sample.completion, " \t\r\n").empty()) skip_empty_answer(row, "completion");
  return row;
}

// A sample without a row number is a conversation of a client, in which the history may lose texts.
ReadableChat SampleEncoder::readable(const Sample& sample, const ordered_json& messages,
                                     bool add_generation_prompt) const {
  return chat_of_row(required(chat_template_), messages, sample.variables, add_generation_prompt,
                     sample.index < 0 ? Losses::AllowInHistory : Losses::Refuse);
}

namespace {

ordered_json without_key(ordered_json messages, const std::string& key) {
  for (ordered_json& message : messages) {
    message.erase(key);
    if (message.contains("content") && message["content"].is_array())
      for (ordered_json& part : message["content"]) part.erase(key);
  }
  return messages;
}

// True when the output stays the same without the key, also if a conversion has dropped the key.
bool is_unread(const std::string& key, const Sample& sample, const ReadableChat& chat,
               const RenderWhole& render) {
  try {
    return render(without_key(chat.messages, key), sample.variables) == chat.rendered.text;
  } catch (const DataError&) {
    return false;
  }
}

// Notes the keys of turns and the variables that `render`, which wrote `chat`, does not read.
void note_unread_keys(EncodedRow& row, const Sample& sample, const ReadableChat& chat,
                      const text::ChatTemplate& chat_template, const RenderWhole& render) {
  for (const std::string& key : sample.further_keys)
    if (is_unread(key, sample, chat, render)) row.keys_unread.push_back(key);
  for (const auto& [name, value] : sample.variables.items())
    if (name != "tools" && name != "documents" && !chat_template.mentions(name))
      row.variables_unread.push_back(name);
}

EncodedRow noting_losses(EncodedRow row, const Sample& sample, const ReadableChat& chat,
                         const text::ChatTemplate& chat_template) {
  const CutTexts cut = find_cut_texts(chat.messages, chat.rendered.text);
  row.reasoning_unread |= cut.thoughts;
  row.text_unread = cut.others;
  note_unread_keys(row, sample, chat, chat_template, whole_text_by(chat_template));
  return row;
}

// Notes the parts of a prompt that the model does not see. Thoughts of earlier turns are no loss:
// templates leave them out on purpose.
void note_losses_of_prompt(EncodedRow& row, const Sample& sample, const ReadableChat& chat,
                           const text::ChatTemplate& chat_template) {
  const RenderWhole render = prompt_text_by(chat_template);
  Unwritten unwritten = find_unwritten(render, chat.messages, sample.variables, chat.rendered.text,
                                       chat.messages.size());
  unwritten.reasoning = false;
  note_unwritten(row, unwritten);
  row.text_unread = find_cut_texts(chat.messages, chat.rendered.text).others;
  note_unread_keys(row, sample, chat, chat_template, render);
}

// The last learnt token, white space aside, as a piece; empty if it is a token that ends texts.
std::string open_end_of(const EncodedRow& row, const text::Tokenizer& tokenizer) {
  for (size_t token = row.ids.size(); token-- > 0;) {
    const int32_t id = row.ids[token];
    if (row.supervised[token] == 0) continue;
    if (tokenizer.is_special(id) || id == tokenizer.eos_id()) return {};
    if (tokenizer.decode({id}, false).find_first_not_of(" \t\r\n") != std::string::npos)
      return tokenizer.piece(id);
  }
  return {};
}

}  // namespace

EncodedRow SampleEncoder::encode_chat(const Sample& sample) const {
  ordered_json joined;
  const ordered_json& given = whole_conversation(sample, joined);
  const ReadableChat chat = readable(sample, given, false);
  EncodedRow row =
      noting_losses(has_turn_weights(given) ? encode_weighted_chat(sample, given, chat)
                                            : encode_readable_chat(sample, given, chat),
                    sample, chat, required(chat_template_));
  if (supervision_.ends != LearntEnds::None) row.open_end = open_end_of(row, tokenizer_);
  return row;
}

// The completion begins at the first token in which the ids of the whole text differ from the ids
// of the prompt. That is the end of the prompt, or a token that crosses the boundary.
EncodedRow SampleEncoder::encode_whole_completion(const Sample& sample) const {
  if (!is_chat(sample)) {
    EncodedRow row = plain_row(sample.prompt + sample.completion);
    append_eos(row.ids);
    const std::vector<int32_t> prompt = plain_row(sample.prompt).ids;
    const size_t first = common_tokens(prompt, row.ids);
    row = supervised_from(std::move(row), first, sample.index);
    row.crosses_seam = first < prompt.size();
    row.empty_answer = trimmed(sample.completion, " \t\r\n").empty();
    return row;
  }
  ordered_json joined;
  const ordered_json& given = whole_conversation(sample, joined);
  if (has_turn_weights(given))
    throw DataError("a turn of a preference has a weight of its own, which no loss reads",
                    {.hint = "leave it out"});
  const text::ChatTemplate& chat_template = required(chat_template_);
  const ReadableChat chat = readable(sample, given, false);
  EncodedRow row{.ids = chat_encoding(chat.rendered.text).ids, .supervised = {}};
  row.own_bos = begins_with_bos(row.ids);
  const Unwritten unwritten =
      find_unwritten(whole_text_by(chat_template), chat.messages, sample.variables,
                     chat.rendered.text, sample.messages.size());
  note_unwritten(row, unwritten);
  row.empty_answer = !unwritten.answers.empty();
  const ReadableChat prompt = readable(sample, sample.messages, true);
  row = supervised_from(std::move(row),
                        common_tokens(chat_encoding(prompt.rendered.text).ids, row.ids),
                        sample.index);
  return noting_losses(std::move(row), sample, chat, chat_template);
}

// A preference loss compares whole completions: every token behind the prompt counts, whatever
// Supervision says about answers. A pair is learnt only if each side has an answer.
EncodedRow SampleEncoder::encode_pair(const Sample& sample) const {
  EncodedRow chosen = encode_whole_completion(sample);
  Sample other = sample;
  other.completion = sample.rejected;
  other.completion_messages = sample.rejected_messages;
  EncodedRow rejected = encode_whole_completion(other);
  if (chosen.empty_answer || rejected.empty_answer) {
    if (supervision_.empty_answers == EmptyAnswers::Error)
      throw DataError(
          fmt::format("the {} answer is empty", chosen.empty_answer ? "chosen" : "rejected"),
          {.hint = "write it, or leave the row out"});
    EncodedRow pair = pair_of_rows(std::move(chosen), rejected);
    pair.empty_answer = true;
    std::fill(pair.supervised.begin(), pair.supervised.end(), uint8_t{0});
    return pair;
  }
  if (chosen.ids == rejected.ids)
    throw DataError("chosen and rejected have the same tokens, so nothing is preferred",
                    {.hint = "leave the row out"});
  if (sample.is_judged) return pair_of_rows(std::move(chosen), rejected);
  // Both sides begin at the same token. A token that crosses the boundary in one side counts in
  // both.
  const size_t first = std::min(first_supervised(chosen), first_supervised(rejected));
  for (EncodedRow* const row : {&chosen, &rejected})
    *row = supervised_from(std::move(*row), first, sample.index);
  return pair_of_rows(std::move(chosen), rejected);
}

EncodedRow SampleEncoder::encode_judged(const Sample& sample) const {
  EncodedRow row = encode_whole_completion(sample);
  row.is_desirable = sample.is_desirable;
  if (std::exchange(row.empty_answer, false)) skip_empty_answer(row, "answer");
  return row;
}

// A row of a chat in which the turns are supervised.
EncodedRow SampleEncoder::row_of_turns(const Sample& sample, const LearntTurns& turns,
                                       const text::Encoding& encoding) const {
  EncodedRow row{.ids = encoding.ids,
                 .supervised = mask_of(turns, encoding, tokenizer_, supervision_.ends),
                 .source_index = sample.index,
                 .own_bos = begins_with_bos(encoding.ids),
                 .empty_answer = supervision_.empty_answers == EmptyAnswers::Skip &&
                                 !turns.unwritten.answers.empty()};
  note_unwritten(row, turns.unwritten);
  return row;
}

EncodedRow SampleEncoder::encode_readable_chat(const Sample& sample, const ordered_json& given,
                                               const ReadableChat& chat) const {
  const text::ChatTemplate& chat_template = required(chat_template_);
  if (learns_every_token()) {
    const std::string& text = chat.rendered.text;
    EncodedRow row{.ids = chat_encoding(text).ids, .supervised = {}};
    row.own_bos = begins_with_bos(row.ids);
    note_unwritten(row, find_unwritten(whole_text_by(chat_template), chat.messages,
                                       sample.variables, text, 0));
    return supervised_from(std::move(row), 1, sample.index);
  }
  const TurnChoice choice =
      turns_by_role(supervision_, given, chat.messages, num_prompt_messages(sample));
  LearntTurns turns = find_learnt_turns(chat_template, chat, sample.variables, choice.first,
                                        choice.roles, supervision_.empty_answers);
  std::erase_if(turns.spans, [&](const TurnSpan& span) {
    return span.message >= 0 && !choice.is_located[static_cast<size_t>(span.message)];
  });
  if (supervision_.supervise == Supervise::Last && turns.spans.size() > 1)
    turns.spans.erase(turns.spans.begin(), std::prev(turns.spans.end()));
  const text::Encoding encoding = chat_encoding(turns.text);
  leave_out_end_of_conversation(turns, chat_template, chat, sample.variables, encoding, tokenizer_);
  return row_of_turns(sample, turns, encoding);
}

// A turn with a weight in the row gets that weight. The roles decide about all other turns.
EncodedRow SampleEncoder::encode_weighted_chat(const Sample& sample, const ordered_json& given,
                                               const ReadableChat& chat) const {
  const text::ChatTemplate& chat_template = required(chat_template_);
  const WeightedTurnChoice choice =
      turns_by_weight(supervision_, given, chat.messages, num_prompt_messages(sample));
  LearntTurns turns = find_learnt_turns(chat_template, chat, sample.variables, choice.turns.first,
                                        choice.turns.roles, supervision_.empty_answers);
  for (const TurnSpan& span : turns.spans)
    if (span.message < 0)
      throw DataError(
          "the turns have weights of their own, but the chat template does not write one {% "
          "generation %} span for each answer",
          {.hint = "put the tags around every answer, or leave the weights out"});
  std::erase_if(turns.spans, [&](const TurnSpan& span) {
    return !choice.turns.is_located[static_cast<size_t>(span.message)];
  });
  std::erase_if(turns.unwritten.answers,
                [&](size_t index) { return !choice.turns.is_located[index]; });
  const text::Encoding encoding = chat_encoding(turns.text);
  leave_out_end_of_conversation(turns, chat_template, chat, sample.variables, encoding, tokenizer_);
  EncodedRow row = row_of_turns(sample, turns, encoding);
  row.own_weights = true;
  if (learns_every_token()) {
    row.empty_answer = false;
    row = supervised_from(std::move(row), 1, sample.index);
  }
  for (const double weight : std::set(choice.weights.begin(), choice.weights.end())) {
    if (weight == 1) continue;
    LearntTurns alike = turns;
    std::erase_if(alike.spans, [&](const TurnSpan& span) {
      return choice.weights[static_cast<size_t>(span.message)] != weight;
    });
    set_weight(row, mask_of(alike, encoding, tokenizer_, LearntEnds::Turn), weight);
  }
  return row;
}

EncodedRow SampleEncoder::encode(const Sample& sample) const {
  return in_row(sample, [&] {
    if (sample.is_pair) return encode_pair(sample);
    if (sample.is_judged) return encode_judged(sample);
    switch (sample.kind) {
      case Kind::Text:
        return encode_text(sample);
      case Kind::PromptCompletion:
        return encode_prompt_completion(sample);
      case Kind::Chat:
      case Kind::ChatPromptCompletion:
        break;
    }
    return encode_chat(sample);
  });
}

ordered_json prompt_messages(const Sample& sample) {
  ordered_json messages = without_turn_weights(sample.messages);
  if (sample.kind == Kind::Chat && messages.size() > 1 && messages.back().is_object() &&
      messages.back().value("role", "") == "assistant")
    messages.erase(messages.size() - 1);
  return messages;
}

EncodedRow SampleEncoder::encode_prompt(const Sample& sample) const {
  return in_row(sample, [&] {
    EncodedRow row;
    if (is_chat(sample)) {
      const ReadableChat chat = readable(sample, prompt_messages(sample), true);
      row.ids = chat_encoding(chat.rendered.text).ids;
      row.own_bos = begins_with_bos(row.ids);
      // A client's request has no row to be named.
      if (sample.index >= 0) note_losses_of_prompt(row, sample, chat, required(chat_template_));
    } else {
      row = plain_row(sample.kind == Kind::Text ? sample.text : sample.prompt);
    }
    if (row.ids.empty()) throw DataError("the prompt has no tokens", {.hint = "write a text"});
    row.source_index = sample.index;
    row.supervised.assign(row.ids.size(), 0);
    return row;
  });
}

std::string SampleEncoder::render(const Sample& sample, bool add_generation_prompt) const {
  return in_row(sample, [&] {
    if (sample.is_pair)
      throw DataError("a preference has two texts, and one would be shown",
                      {.hint = "leave --render out: the tokens of both are shown"});
    if (is_chat(sample)) {
      ordered_json joined;
      return readable(sample, whole_conversation(sample, joined), add_generation_prompt)
          .rendered.text;
    }
    return sample.kind == Kind::Text ? sample.text : sample.prompt + sample.completion;
  });
}

std::string SampleEncoder::policy(const Sample& sample) const {
  return policy_line(sample, tokenizer_, chat_template_, supervision_);
}

int64_t count_supervised(const EncodedRow& row) {
  return std::count_if(row.supervised.begin(), row.supervised.end(),
                       [](uint8_t flag) { return flag != 0; });
}

std::string own_bos_notice(int64_t rows) {
  return fmt::format("{} with a BOS of {} own; the one that the tokenizer adds was left out",
                     rows == 1 ? "1 row begins" : fmt::format("{} rows begin", rows),
                     rows == 1 ? "its" : "their");
}

}  // namespace convoy::data
