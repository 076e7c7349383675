// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/request.h"

#include <fmt/format.h>

#include <cmath>

#include "convoy/core/base/error.h"

namespace convoy::generate {

bool Request::draws_alike() const {
  return num_likeliest == 0 && logit_bias.empty() && form.grammar == nullptr &&
         sampling.repetition_penalty == 1 && sampling.frequency_penalty == 0 &&
         sampling.presence_penalty == 0;
}

void check_request(const Request& request, int64_t pickable_ids) {
  check_sampling(request.sampling);
  const int64_t fewest_tokens = request.wants_prompt_logprobs ? 0 : 1;
  if (request.max_new_tokens < fewest_tokens)
    throw ConfigError(fmt::format("max_new_tokens must be at least {}, found {}", fewest_tokens,
                                  request.max_new_tokens),
                      {.key = "max_new_tokens", .hint = "give 1 or more"});
  if (request.num_likeliest < 0 || (request.num_likeliest > 0 && !request.wants_logprobs))
    throw ConfigError(fmt::format("top_logprobs must be at least 0, with logprobs, found {}",
                                  request.num_likeliest),
                      {.key = "top_logprobs", .hint = "add logprobs, or leave top_logprobs out"});
  if (request.num_prompt_likeliest < 0 ||
      (request.num_prompt_likeliest > 0 && !request.wants_prompt_logprobs))
    throw ConfigError(
        fmt::format("prompt_logprobs must be at least 0, found {}", request.num_prompt_likeliest),
        {.key = "prompt_logprobs", .hint = "give 0 or more, or leave it out"});
  CONVOY_INVARIANT(
      !request.logprobs_at_temperature ||
          (request.logit_bias.empty() && request.sampling.repetition_penalty == 1 &&
           request.sampling.frequency_penalty == 0 && request.sampling.presence_penalty == 0),
      "log-probabilities at a temperature with rules that change logits");
  for (const auto& [id, bias] : request.logit_bias)
    if (id < 0 || id >= pickable_ids || !std::isfinite(bias))
      throw ConfigError(fmt::format("logit_bias needs tokens from 0 to {} and finite numbers, "
                                    "found {}: {}",
                                    pickable_ids - 1, id, bias),
                        {.key = "logit_bias",
                         .hint = "name ids of the model's tokens, with numbers from -100 to 100"});
  for (const std::string& stop : request.stop)
    if (stop.empty())
      throw ConfigError("stop must be a list of strings that are not empty",
                        {.key = "stop", .hint = "leave stop out"});
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::Stop:
      return "stop";
    case FinishReason::Length:
      return "length";
    case FinishReason::GrammarLimit:
      return "grammar_limit";
    case FinishReason::NotFinite:
      break;
  }
  return "not_finite";
}

}  // namespace convoy::generate
