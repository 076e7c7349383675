// SPDX-License-Identifier: Apache-2.0
//
// Requests in the form of OpenAI's API, and what is wrong with them. Fields that the server cannot
// serve are refused by name, never ignored. Plain data.
// https://platform.openai.com/docs/api-reference/chat/create and .../completions/create
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convoy/apps/serving/json_answer.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

using serving::ApiError;
using serving::dumped;
using serving::event;
using serving::Json;
using serving::json_headers;
using serving::now_seconds;

enum class ApiKind { Chat, Completion };

struct ApiRequest {
  ApiKind kind = ApiKind::Chat;
  std::string model;
  Json messages;  // of Chat
  // Texts, or ids: of Completion.
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  Json template_kwargs = Json::object();
  // Temperature and top_p default to 1, as in OpenAI's API. max_new_tokens 0: up to the model's
  // last position.
  settings::SamplingFlags sampling;
  std::optional<int64_t> seed;
  bool streams = false;
  bool reports_usage = false;  // in the last part of a stream
};

// Throws ApiError.
ApiRequest parse_api_request(ApiKind kind, std::string_view body);

}  // namespace convoy::recipes
