// SPDX-License-Identifier: Apache-2.0
//
// A request whose answers are being computed, and its client's side of them. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "convoy/apps/recipes/serving/api_answer.h"
#include "convoy/apps/serving/front_link.h"
#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {

using serving::ExchangePtr;

class RunningAnswer {
 public:
  RunningAnswer(ExchangePtr exchange, AnswerHead head, const ApiRequest& request, int64_t choices);

  bool streams() const { return streams_; }
  bool is_open() const { return exchange_->is_open(); }  // false once the client left
  void count_prompt(int64_t tokens) { usage_.prompt_tokens += tokens; }

  void begin();  // before all that follow
  // `text`: the whole text of the choice so far.
  void grow(int64_t choice, std::string_view text);
  // The answer goes out with the end of its last choice.
  void end(int64_t choice, generate::Completion completion, const text::Tokenizer& tokenizer);
  // A stream that has begun ends with the error as its last event.
  void fail(const ApiError& error);

 private:
  void send_text(int64_t choice, std::string_view text);

  ExchangePtr exchange_;
  AnswerHead head_;
  bool streams_;
  bool reports_usage_;
  int64_t unended_;
  Usage usage_;
  std::vector<generate::Completion> completions_;
  std::vector<generate::CertainText> certain_;
};

}  // namespace convoy::recipes
