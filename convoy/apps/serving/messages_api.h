// SPDX-License-Identifier: Apache-2.0
//
// Anthropic's Messages API in terms of OpenAI's: requests become chat requests, answers of a chat
// become messages. A field without an equal in a chat is refused by name. Plain data, thread-safe.
// https://docs.claude.com/en/api/messages
#pragma once

#include <string>
#include <string_view>

#include "convoy/apps/serving/json_answer.h"

namespace convoy::serving {

inline constexpr std::string_view kMessagesPath = "/v1/messages";
inline constexpr std::string_view kCountTokensPath = "/v1/messages/count_tokens";

// True for the two paths of the Messages API that are served.
bool speaks_messages(std::string_view path);

// The request that an engine gets in place of a client's.
struct EngineRequest {
  std::string path;
  std::string body;
  std::string form_field = {};  // the client's field for the form of the answer; empty: none
};

// `path`: one of the two paths. Throws ApiError, which names the field of the client's request.
EngineRequest engine_request(std::string_view path, std::string_view body);

// The stop reason of a message for the finish reason of a choice. `stop_string`: the stop sequence
// that ended the text; null or a string.
Json stop_reason_of(const Json& finish_reason, const Json& stop_string);
// {"input_tokens", "output_tokens", ...} for the usage of a chat. Tokens that were read from a
// shared prefix count apart, as there.
Json message_usage(const Json& usage);
// "msg_..." for "chatcmpl-...".
std::string message_id(const std::string& answer_id);

// The message for a whole chat answer.
Json whole_message(const Json& answer);
// {"input_tokens": N} for the answer of /tokenize.
Json token_count(const Json& answer);

// {"type": "error", "error": {"type", "message"}} for an error in OpenAI's form. The message names
// the field of the client's request. `form_field`: as in EngineRequest.
Json message_error(int status, const Json& error, std::string_view form_field = {});

}  // namespace convoy::serving
