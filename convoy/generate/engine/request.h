// SPDX-License-Identifier: Apache-2.0
//
// The requests to a generation engine, and its answers. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/generate/engine/token_sampler.h"

namespace convoy::generate {

struct Request {
  int64_t number = 0;  // the caller's; unique among the unfinished ones
  std::vector<int32_t> prompt = {};
  Sampling sampling = {};
  std::vector<kernels::LogitBias> logit_bias = {};
  DrawSource draw = {};
  int64_t max_new_tokens = 200;
  std::vector<std::string> stop = {};  // strings that end a text and are not part of it
  std::vector<int32_t> stop_ids = {};  // beside the engine's end ids
  int64_t priority = 0;                // higher goes first
  int64_t adapter = 0;                 // 0 = none, else the engine's adapter number `adapter`
  bool wants_logprobs = false;
  bool shows_special_tokens = false;  // in the text, but for end tokens
  int64_t num_likeliest = 0;  // with wants_logprobs: also this many likeliest tokens of each place

  // All its tokens are drawn by one rule, whatever the tokens before.
  bool draws_alike() const;
};

// Throws ConfigError on a rule out of range. `pickable_ids`: ids of the vocabulary that may be
// drawn.
void check_request(const Request& request, int64_t pickable_ids);

// Stop: an end token or a stop string. Length: a limit cut the text. NotFinite: the model's logits
// held no number.
enum class FinishReason { Stop, Length, NotFinite };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", "not_finite"

// The tokens of an answer in their order. The last two are empty where they were not requested.
struct AnswerTokens {
  std::span<const int32_t> ids = {};
  std::span<const float> logprobs = {};
  std::span<const std::vector<kernels::TokenLogprob>> likeliest = {};

  AnswerTokens first(size_t count) const {
    return {ids.first(count), logprobs.first(std::min(count, logprobs.size())),
            likeliest.first(std::min(count, likeliest.size()))};
  }
};

struct Completion {
  int64_t number = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;            // prompt tokens taken from a shared prefix
  std::string text = {};                // without end token, stop string and special tokens
  std::vector<int32_t> token_ids = {};  // all that were generated, the end token included
  int64_t text_tokens = 0;              // how many of the first ids begin in `text`
  // For each token, when requested: by the model, before any rule.
  std::vector<float> logprobs = {};
  std::vector<std::vector<kernels::TokenLogprob>> likeliest = {};  // for each token, when requested
  FinishReason finish_reason = FinishReason::Length;

  AnswerTokens tokens() const { return {token_ids, logprobs, likeliest}; }
  AnswerTokens tokens_of_text() const { return tokens().first(static_cast<size_t>(text_tokens)); }
};

}  // namespace convoy::generate
