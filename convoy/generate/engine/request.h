// SPDX-License-Identifier: Apache-2.0
//
// The requests to a generation engine, and its answers. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/text/answer_grammar.h"
#include "convoy/generate/engine/token_sampler.h"

namespace convoy::generate {

// The tags of a model's thoughts, where each is one token; below 0: none. A grammar begins behind
// the closing tag.
struct ThoughtIds {
  int32_t begin = -1;  // the answer may begin with it
  int32_t end = -1;
  bool are_open = false;  // the prompt ends within thoughts
};

// The form that an answer must have.
struct AnswerForm {
  std::shared_ptr<const text::AnswerGrammar> grammar = {};
  ThoughtIds thoughts = {};
};

struct Request {
  int64_t number = 0;  // set by the caller; unique among the unfinished requests
  std::vector<int32_t> prompt = {};
  Sampling sampling = {};
  std::vector<kernels::LogitBias> logit_bias = {};
  DrawSource draw = {};
  int64_t max_new_tokens = 200;        // 0: ends once the prompt was read
  std::vector<std::string> stop = {};  // strings that end a text and are not part of it
  std::vector<int32_t> stop_ids = {};  // end ids besides the engine's
  int64_t priority = 0;                // higher goes first
  int64_t adapter = 0;                 // 0 = none, n = the engine's n-th adapter
  AnswerForm form = {};                // without a grammar: any text
  bool wants_logprobs = false;
  // Wants the prompt's log-probabilities too. Such a prompt is computed whole: it takes no prefix
  // from other rows.
  bool wants_prompt_logprobs = false;
  // With wants_logprobs: of the distribution at the sampling's temperature, before top-k, top-p and
  // min-p, instead of the model's own. Without penalties and logit_bias.
  bool logprobs_at_temperature = false;
  bool shows_special_tokens = false;  // the text shows special tokens, except end tokens
  int64_t num_likeliest = 0;         // with wants_logprobs: number of likeliest tokens per position
  int64_t num_prompt_likeliest = 0;  // the same of the prompt

  // True when the rule for a token does not depend on the tokens before it.
  bool draws_alike() const;
};

// Throws ConfigError on a sampling rule out of range. `pickable_ids`: ids of the vocabulary that
// may be drawn.
void check_request(const Request& request, int64_t pickable_ids);

// Stop: an end token or a stop string. Length: a limit cut the text. NotFinite: the model's logits
// held no number. GrammarLimit: the grammar could not say the next token, so the text is cut.
enum class FinishReason { Stop, Length, NotFinite, GrammarLimit };
// "stop", "length", "not_finite", "grammar_limit"
std::string_view finish_reason_name(FinishReason reason);

// The tokens of an answer in their order. `logprobs` and `likeliest` are empty when they were not
// requested.
struct AnswerTokens {
  std::span<const int32_t> ids = {};
  std::span<const float> logprobs = {};
  std::span<const std::vector<kernels::TokenLogprob>> likeliest = {};

  AnswerTokens first(size_t count) const {
    return {ids.first(count), logprobs.first(std::min(count, logprobs.size())),
            likeliest.first(std::min(count, likeliest.size()))};
  }
};

// For each token of a prompt. The first has none: NaN, and no likeliest tokens.
struct PromptLogprobs {
  std::vector<float> logprobs = {};
  std::vector<std::vector<kernels::TokenLogprob>> likeliest = {};  // when requested
};

struct Completion {
  int64_t number = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;            // prompt tokens taken from a shared prefix
  std::string text = {};                // without end token, stop string and special tokens
  std::vector<int32_t> token_ids = {};  // all generated tokens, including the end token
  int64_t text_tokens = 0;              // number of leading ids whose text begins in `text`
  // For each token, when requested: the model's log-probability, before any sampling rule but the
  // temperature of Request::logprobs_at_temperature. With a grammar its softmax is over the ids
  // that the grammar allows.
  std::vector<float> logprobs = {};
  std::vector<std::vector<kernels::TokenLogprob>> likeliest = {};  // for each token, when requested
  PromptLogprobs prompt_logprobs = {};                             // when requested
  FinishReason finish_reason = FinishReason::Length;
  std::string stop_string = {};  // the one that ended the answer; empty: none

  AnswerTokens tokens() const { return {token_ids, logprobs, likeliest}; }
  AnswerTokens tokens_of_text() const { return tokens().first(static_cast<size_t>(text_tokens)); }
};

}  // namespace convoy::generate
