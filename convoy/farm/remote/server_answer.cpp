// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/server_answer.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/lower_case.h"
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

using Json = nlohmann::json;

// The error in a body: {"error": {...}} of OpenAI, {"choices": [{"error": {...}}]} of OpenRouter,
// [{"error": {...}}] of Gemini, or the body itself.
const Json& error_in(const Json& body) {
  if (body.is_array() && !body.empty()) return error_in(body.front());
  if (!body.is_object()) return body;
  if (const auto error = body.find("error"); error != body.end() && !error->is_null())
    return *error;
  if (const auto choices = body.find("choices");
      choices != body.end() && choices->is_array() && !choices->empty())
    return error_in(choices->front());
  return body;
}

std::string lower_text(const Json& error, const char* name) {
  const Json* text = &error;
  if (error.is_object()) {
    const auto found = error.find(name);
    if (found == error.end()) return {};
    text = &*found;
  }
  return text->is_string() ? lower_case(text->get<std::string>()) : std::string();
}

// True if the account has no credit. The codes are of OpenAI (insufficient_quota, billing_...),
// Moonshot (exceeded_current_quota_error), DashScope (Arrearage) and one-api
// (insufficient_user_quota). The words are of OpenRouter, DeepSeek and Anthropic. "You exceeded
// your current quota" is no sign: Gemini also says it of a limit per minute.
bool is_about_credit(const http::Answer& answer) {
  if (answer.status == 402) return true;
  const Json body = Json::parse(answer.body, nullptr, false);
  const Json& error = error_in(body);
  if (error.is_object())
    for (const char* name : {"code", "type"}) {
      const std::string code = lower_text(error, name);
      for (const char* sign :
           {"insufficient_quota", "insufficient_user_quota", "insufficient_credit",
            "insufficient_balance", "insufficient_funds", "exceeded_current_quota",
            "billing_hard_limit", "billing_not_active", "payment_required", "arrearage"})
        if (code.starts_with(sign)) return true;
    }
  const std::string message = lower_text(error, "message");
  for (const char* words : {"insufficient credit", "insufficient balance", "insufficient funds",
                            "your credit balance is too low", "billing hard limit"})
    if (message.starts_with(words)) return true;
  return false;
}

}  // namespace

AnswerSense sense_of(const http::Answer& answer) {
  if (is_about_credit(answer)) return AnswerSense::OfCredit;
  switch (answer.status) {
    // OpenAI also answers with 429 if one request exceeds the whole limit per minute.
    case 429:
      return holds(answer, {"Request too large"}) ? AnswerSense::OfText : AnswerSense::OfLoad;
    case 503:
    case 529:
      return AnswerSense::OfLoad;
    case 401:
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
