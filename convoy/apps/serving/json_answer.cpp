// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/json_answer.h"

#include <chrono>

namespace convoy::serving {
namespace {

const char* error_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

// Errors quote text that the client sent, which may be megabytes, so the text is cut.
std::string bounded(const std::string& text) {
  constexpr size_t kMostBytes = 1000;
  return text.size() <= kMostBytes ? text : text.substr(0, kMostBytes) + "...";
}

}  // namespace

Json ApiError::body() const {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(bounded(text));
  };
  return {{"error",
           {{"message", bounded(message_)},
            {"type", error_type(status_)},
            {"param", text_or_null(parameter_)},
            {"code", text_or_null(code_)}}}};
}

http::Headers ApiError::headers() const {
  http::Headers headers = json_headers();
  headers.insert(headers.end(), more_headers_.begin(), more_headers_.end());
  if (status_ == 429 || status_ == 503) headers.emplace_back("retry-after", "1");
  return headers;
}

ApiError model_not_served(const std::string& name) {
  return {404, "the model `" + name + "` is not served: GET /v1/models lists those that are",
          "model", "model_not_found"};
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string event(const Json& data) { return "data: " + dumped(data) + "\n\n"; }

http::Headers json_headers() { return {{"content-type", "application/json"}}; }

http::ErrorAnswer error_answer(int status, std::string_view why) {
  return {.content_type = "application/json",
          .body = dumped(ApiError(status, std::string(why)).body()) + "\n"};
}

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace convoy::serving
