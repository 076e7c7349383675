// SPDX-License-Identifier: Apache-2.0
//
// Reads an answer without a text: whether it concerns the text, the server, or all requests.
#pragma once

#include <chrono>
#include <optional>

#include "convoy/core/http/answer.h"
#include "convoy/core/http/curl_library.h"

namespace convoy::remote {

// The meaning of a status where no further answer tells.
// OfLoad: the server asks for fewer requests. OfServer: it failed; another request may succeed.
// OfText: it refuses what this text holds, or what all of them do. OfAddress: it does not know the
// path or the model now, or sends elsewhere. OfKey: it refuses the sender.
enum class AnswerSense { OfLoad, OfServer, OfText, OfAddress, OfKey };
AnswerSense sense_of(const http::Answer& answer);

// The words by which servers say that prompt and text are longer than the model's positions: a
// fault of the text, even of the first one.
bool is_about_length(const http::Answer& answer);

// "Unsupported parameter: 'max_tokens' is not supported with this model. Use
// 'max_completion_tokens' instead."
bool needs_newer_limit(const http::Answer& answer);

// The rest that the server asks for: Retry-After in seconds or as a date, or retry-after-ms. A date
// counts from the answer's own Date, because clocks differ. Empty: none, or none that is meant.
std::optional<std::chrono::milliseconds> retry_after(const http::CurlLibrary& curl,
                                                     const http::Answer& answer);

}  // namespace convoy::remote
