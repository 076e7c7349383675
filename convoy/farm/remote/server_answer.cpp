// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/server_answer.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>

#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::remote {
namespace {

constexpr double kLongestRestSeconds = 3600;
constexpr double kMostMeantSeconds = 7 * 86400;  // a longer pause is an error of the server

std::optional<double> number_in(const http::Answer& answer, const char* header) {
  const std::string text = answer.header(header);
  return text_as<double>(trimmed(text, " \t"));
}

// The seconds between the answer's date and the date in its Retry-After.
std::optional<double> seconds_to_date(const http::CurlLibrary& curl, const http::Answer& answer) {
  const time_t until = curl.getdate(answer.header("retry-after").c_str(), nullptr);
  if (until < 0) return {};
  const time_t told = curl.getdate(answer.header("date").c_str(), nullptr);
  return std::difftime(until, told < 0 ? std::time(nullptr) : told);
}

bool holds(const http::Answer& answer, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return answer.body.find(word) != std::string::npos; });
}

}  // namespace

AnswerSense sense_of(const http::Answer& answer) {
  switch (answer.status) {
    // OpenAI also answers with 429 if one request exceeds the whole limit per minute.
    case 429:
      return holds(answer, {"Request too large"}) ? AnswerSense::OfText : AnswerSense::OfLoad;
    case 503:
    case 529:
      return AnswerSense::OfLoad;
    case 401:
    case 402:
    case 407:
      return AnswerSense::OfKey;
    case 404:
    case 405:
    case 421:
    case 501:
    case 505:
      return AnswerSense::OfAddress;
    case 408:
    case 409:
    case 425:
      return AnswerSense::OfServer;
    default:
      if (answer.status >= 500) return AnswerSense::OfServer;
      return answer.status < 400 ? AnswerSense::OfAddress : AnswerSense::OfText;
  }
}

bool is_about_length(const http::Answer& answer) {
  return answer.status == 413 ||
         holds(answer, {"context_length", "context length", "context size", "context window",
                        "maximum allowed length", "max_position", "positions", "too long",
                        "Request too large"});
}

bool needs_newer_limit(const http::Answer& answer) {
  return answer.status == 400 && holds(answer, {"max_completion_tokens"});
}

std::optional<std::chrono::milliseconds> retry_after(const http::CurlLibrary& curl,
                                                     const http::Answer& answer) {
  std::optional<double> seconds = number_in(answer, "retry-after-ms");
  if (seconds) *seconds /= 1000;
  if (!seconds) seconds = number_in(answer, "retry-after");
  if (!seconds && !answer.header("retry-after").empty()) seconds = seconds_to_date(curl, answer);
  if (!seconds || !(*seconds >= 0) || *seconds > kMostMeantSeconds) return {};
  return std::chrono::milliseconds(std::llround(1000 * std::min(*seconds, kLongestRestSeconds)));
}

}  // namespace convoy::remote
