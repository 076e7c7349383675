// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/running_answer.h"

namespace convoy::recipes {

namespace {

std::string text_of(const std::variant<std::string, std::vector<int32_t>>& prompt,
                    const text::Tokenizer& tokenizer) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return tokenizer.decode(std::get<std::vector<int32_t>>(prompt), false);
}

AskedPrompts asked_prompts(const ApiRequest& request, std::vector<std::vector<int32_t>> prompts,
                           const text::Tokenizer& tokenizer) {
  AskedPrompts asked{.ids = std::move(prompts),
                     .choices_per_prompt = request.sampling.n,
                     .echoes = request.echoes,
                     .prompt_logprobs = request.prompt_logprobs};
  if (request.echoes_logprobs()) asked.echoed_logprobs = request.top_logprobs;
  if (request.echoes)
    for (const auto& prompt : request.prompts) asked.texts.push_back(text_of(prompt, tokenizer));
  return asked;
}

}  // namespace

RunningAnswer::RunningAnswer(ExchangePtr exchange, AnswerHead head, const ApiRequest& request,
                             std::vector<std::vector<int32_t>> prompts,
                             const text::Tokenizer& tokenizer)
    : exchange_(std::move(exchange)),
      head_(std::move(head)),
      streams_(request.streams),
      prompts_(asked_prompts(request, std::move(prompts), tokenizer)),
      unended_(std::ssize(prompts_.ids) * prompts_.choices_per_prompt),
      tokenizer_(tokenizer),
      completions_(static_cast<size_t>(unended_)),
      streams_by_choice_(streams_ ? completions_.size() : 0,
                         {.text = generate::CertainText(request.sampling.stop.names),
                          .thoughts = ThoughtReader(head_.thoughts),
                          .logprobs = LogprobWriter(head_.kind, tokenizer),
                          .reader = ToolCallReader(head_.tool_format, head_.begins_in_thoughts)}) {}

void RunningAnswer::begin() {
  if (!streams_) return;
  exchange_->start(200, {{"content-type", "text/event-stream"}, {"cache-control", "no-cache"}});
  for (int64_t choice = 0; choice < unended_; ++choice) exchange_->send(first_part(head_, choice));
}

void RunningAnswer::grow(int64_t choice, std::string_view text,
                         const generate::AnswerTokens& tokens) {
  Stream& stream = streams_by_choice_[static_cast<size_t>(choice)];
  const ToolCallReader::Found found =
      read_text(choice, stream.thoughts.take(stream.text.grow(text)));
  send_found(choice, found, tokens, text.size() - stream.text.given_bytes());
}

// Sends the thoughts, and returns the text and calls behind them.
ToolCallReader::Found RunningAnswer::read_text(int64_t choice, const ThoughtReader::Found& found) {
  if (!found.thoughts.empty()) exchange_->send(thoughts_part(head_, choice, found.thoughts));
  return streams_by_choice_[static_cast<size_t>(choice)].reader.take(found.text);
}

// Sends found text and calls. Holds back the log-probabilities of tokens whose text is not certain
// yet.
void RunningAnswer::send_found(int64_t choice, const ToolCallReader::Found& found,
                               const generate::AnswerTokens& tokens, size_t unsure_bytes) {
  Stream& stream = streams_by_choice_[static_cast<size_t>(choice)];
  if (!found.text.empty())
    exchange_->send(
        text_part(head_, choice, found.text, stream.logprobs.next(tokens, unsure_bytes)));
  if (found.calls.empty()) return;
  exchange_->send(calls_part(head_, choice, found.calls, stream.calls));
  stream.calls += std::ssize(found.calls);
}

void RunningAnswer::end_stream(int64_t choice, const generate::Completion& completion) {
  Stream& stream = streams_by_choice_[static_cast<size_t>(choice)];
  send_found(choice, read_text(choice, stream.thoughts.take(stream.text.end(completion.text))), {},
             0);
  send_found(choice, read_text(choice, stream.thoughts.end()), {}, 0);
  send_found(choice, stream.reader.end(), {}, 0);
  const Json logprobs = stream.logprobs.next(completion.tokens_of_text());
  if (!logprobs.is_null()) exchange_->send(text_part(head_, choice, "", logprobs));
  exchange_->send(end_part(head_, choice, completion, stream.calls > 0));
}

// Counts the tokens of a choice. The choices of a prompt share its tokens, so they count once.
void RunningAnswer::count(int64_t choice, const generate::Completion& completion) {
  usage_.completion_tokens += std::ssize(completion.token_ids);
  if (choice % prompts_.choices_per_prompt != 0) return;
  usage_.prompt_tokens += completion.prompt_tokens;
  usage_.cached_tokens += completion.cached_tokens;
}

void RunningAnswer::end(int64_t choice, generate::Completion completion) {
  count(choice, completion);
  if (streams_) end_stream(choice, completion);
  completions_[static_cast<size_t>(choice)] = std::move(completion);
  if (--unended_ > 0) return;
  if (!streams_)
    return respond_json(*exchange_,
                        whole_answer(head_, prompts_, completions_, usage_, tokenizer_));
  if (head_.reports_usage) exchange_->send(usage_part(head_, usage_));
  exchange_->send(kLastEvent);
}

void RunningAnswer::fail(const ApiError& error) {
  if (streams_)
    exchange_->send(event(error.body()));
  else
    respond_error(*exchange_, error);
}

}  // namespace convoy::recipes
