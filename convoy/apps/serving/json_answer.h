// SPDX-License-Identifier: Apache-2.0
//
// Answers of the server that are one JSON object, among them errors in OpenAI's form.
#pragma once

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "convoy/core/http/http_server.h"

namespace convoy::serving {

using Json = nlohmann::ordered_json;

// An error that is sent as the answer.
class ApiError : public std::exception {
 public:
  ApiError(int status, std::string message, std::string parameter = {}, std::string code = {},
           http::Headers more_headers = {})
      : status_(status),
        message_(std::move(message)),
        parameter_(std::move(parameter)),
        code_(std::move(code)),
        more_headers_(std::move(more_headers)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }
  // {"error": {"message", "type", "param", "code"}}
  Json body() const;
  // 429 and 503 ask the client to try again.
  http::Headers headers() const;

 private:
  int status_;
  std::string message_;
  std::string parameter_;
  std::string code_;
  http::Headers more_headers_;
};

ApiError model_not_served(const std::string& name);

std::string dumped(const Json& json);  // invalid UTF-8 becomes U+FFFD
std::string event(const Json& data);   // "data: {...}\n\n": a server-sent event
http::Headers json_headers();
int64_t now_seconds();  // since 1970

// The answer to a request that did not arrive completely.
http::ErrorAnswer error_answer(int status, std::string_view why);

// Sends the whole answer. `Exchange`: http::Exchange or EngineExchange.
template <class Exchange>
void respond_json(Exchange& exchange, const Json& json) {
  exchange.respond(200, json_headers(), dumped(json) + "\n");
}
template <class Exchange>
void respond_error(Exchange& exchange, const ApiError& error) {
  exchange.respond(error.status(), error.headers(), dumped(error.body()) + "\n");
}

}  // namespace convoy::serving
