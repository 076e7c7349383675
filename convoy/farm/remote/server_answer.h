// SPDX-License-Identifier: Apache-2.0
//
// Reads an answer that has no text, and finds out whether the cause is the text, the server, or
// something in all requests.
#pragma once

#include <chrono>
#include <optional>

#include "convoy/core/http/answer.h"
#include "convoy/core/http/curl_library.h"

namespace convoy::remote {

// The meaning of a status, if no further answer shows more.
// OfLoad: the server asks for fewer requests. OfServer: the server failed; another request may
// succeed. OfText: the server refuses the content of this text, or of every text. OfAddress: the
// server does not know the path or the model now, or it redirects. OfKey: the server refuses the
// sender. OfCredit: the sender's account cannot pay, so waiting does not help.
enum class AnswerSense { OfLoad, OfServer, OfText, OfAddress, OfKey, OfCredit };
AnswerSense sense_of(const http::Answer& answer);

// True if the answer says that prompt and text are longer than the model's positions. That concerns
// only this text, even if it is the first text.
bool is_about_length(const http::Answer& answer);

// True for an error such as "Unsupported parameter: 'max_tokens' is not supported with this model.
// Use 'max_completion_tokens' instead."
bool needs_newer_limit(const http::Answer& answer);

// The pause that the server asks for: Retry-After in seconds or as a date, or retry-after-ms. A
// date is compared with the answer's own Date, because clocks differ. Empty: no pause, or one that
// is too long to be meant.
std::optional<std::chrono::milliseconds> retry_after(const http::CurlLibrary& curl,
                                                     const http::Answer& answer);

}  // namespace convoy::remote
