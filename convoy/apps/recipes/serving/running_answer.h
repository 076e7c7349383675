// SPDX-License-Identifier: Apache-2.0
//
// A request whose answers are being computed, and its client's side of them. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "convoy/apps/recipes/serving/api_answer.h"
#include "convoy/apps/recipes/serving/api_logprobs.h"
#include "convoy/apps/serving/front_link.h"
#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {

using serving::ExchangePtr;

class RunningAnswer {
 public:
  // The tokenizer must outlive it.
  RunningAnswer(ExchangePtr exchange, AnswerHead head, const ApiRequest& request,
                std::vector<std::vector<int32_t>> prompts, const text::Tokenizer& tokenizer);

  bool streams() const { return streams_; }
  bool is_open() const { return exchange_->is_open(); }  // false once the client left

  void begin();  // call it before the functions below
  // `text` and `tokens`: all of the choice so far.
  void grow(int64_t choice, std::string_view text, const generate::AnswerTokens& tokens);
  // Ends a choice. The end of the last choice completes the answer.
  void end(int64_t choice, generate::Completion completion);
  // Ends the answer with the error, which is the last event of a stream that has begun.
  void fail(const ApiError& error);

 private:
  // The state of a choice that streams.
  struct Stream {
    generate::CertainText text;
    ThoughtReader thoughts;
    LogprobWriter logprobs;
    ToolCallReader reader;
    int64_t calls = 0;  // calls that were sent
  };

  void count(int64_t choice, const generate::Completion& completion);
  void send_found(int64_t choice, const ToolCallReader::Found& found,
                  const generate::AnswerTokens& tokens, size_t unsure_bytes);
  ToolCallReader::Found read_text(int64_t choice, const ThoughtReader::Found& found);
  void end_stream(int64_t choice, const generate::Completion& completion);

  ExchangePtr exchange_;
  AnswerHead head_;
  bool streams_;
  AskedPrompts prompts_;
  int64_t unended_;
  Usage usage_;
  const text::Tokenizer& tokenizer_;
  std::vector<generate::Completion> completions_;
  std::vector<Stream> streams_by_choice_;
};

}  // namespace convoy::recipes
