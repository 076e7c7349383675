// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/running_answer.h"

namespace convoy::recipes {

RunningAnswer::RunningAnswer(ExchangePtr exchange, AnswerHead head, const ApiRequest& request,
                             int64_t choices)
    : exchange_(std::move(exchange)),
      head_(std::move(head)),
      streams_(request.streams),
      reports_usage_(request.reports_usage),
      unended_(choices),
      completions_(static_cast<size_t>(choices)),
      certain_(static_cast<size_t>(choices), generate::CertainText(request.sampling.stop.names)) {}

void RunningAnswer::begin() {
  if (!streams_) return;
  exchange_->start(200, {{"content-type", "text/event-stream"}, {"cache-control", "no-cache"}});
  for (int64_t choice = 0; choice < unended_; ++choice) exchange_->send(first_part(head_, choice));
}

void RunningAnswer::grow(int64_t choice, std::string_view text) {
  send_text(choice, certain_[static_cast<size_t>(choice)].grow(text));
}

void RunningAnswer::end(int64_t choice, generate::Completion completion,
                        const text::Tokenizer& tokenizer) {
  usage_.completion_tokens += std::ssize(completion.token_ids);
  if (streams_) {
    send_text(choice, certain_[static_cast<size_t>(choice)].end(completion.text));
    exchange_->send(end_part(head_, choice, completion.finish_reason));
  }
  completions_[static_cast<size_t>(choice)] = std::move(completion);
  if (--unended_ > 0) return;
  if (!streams_)
    return respond_json(*exchange_, whole_answer(head_, completions_, usage_, tokenizer));
  if (reports_usage_) exchange_->send(usage_part(head_, usage_));
  exchange_->send(kLastEvent);
}

void RunningAnswer::fail(const ApiError& error) {
  if (streams_)
    exchange_->send(event(error.body()));
  else
    respond_error(*exchange_, error);
}

void RunningAnswer::send_text(int64_t choice, std::string_view text) {
  if (streams_ && !text.empty()) exchange_->send(text_part(head_, choice, text));
}

}  // namespace convoy::recipes
