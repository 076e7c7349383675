// SPDX-License-Identifier: Apache-2.0
//
// Requests in the form of OpenAI's API. Plain data.
// https://platform.openai.com/docs/api-reference/chat/create and .../completions/create
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convoy/apps/recipes/serving/api_fields.h"
#include "convoy/apps/recipes/serving/api_form.h"
#include "convoy/apps/recipes/serving/api_tools.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/sampling_choice.h"
#include "convoy/generate/engine/request.h"

namespace convoy::recipes {

enum class ApiKind { Chat, Completion };

struct ApiRequest {
  ApiKind kind = ApiKind::Chat;
  std::string model;
  Json messages;  // for ApiKind::Chat
  AskedTools tools;
  // Texts or ids, for ApiKind::Completion.
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  Json template_kwargs = Json::object();
  settings::SamplingFlags sampling;  // settled
  int64_t top_logprobs = 0;          // with sampling.logprobs
  bool echoes = false;               // the text begins with the prompt, for ApiKind::Completion
  // The number of likeliest tokens for each token of the prompt; empty: no log-probabilities of the
  // prompt, unless an echo has them.
  std::optional<int64_t> prompt_logprobs;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::vector<kernels::LogitBias> logit_bias;
  std::optional<int64_t> seed;
  std::optional<AskedForm> form;  // the form that the answers must have
  bool streams = false;
  bool reports_usage = false;  // in the last part of a stream

  bool echoes_logprobs() const { return echoes && sampling.logprobs; }
  bool reads_prompt_logprobs() const { return echoes_logprobs() || prompt_logprobs.has_value(); }
};

// Both throw ApiError. `sources`: the sources of sampling values that the request leaves open.
std::vector<int32_t> read_ids(const Json& list, const std::string& field);
ApiRequest parse_api_request(ApiKind kind, std::string_view body,
                             const settings::SamplingSources& sources = {});

}  // namespace convoy::recipes
