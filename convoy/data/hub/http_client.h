// SPDX-License-Identifier: Apache-2.0
//
// HTTP requests in sequence over connections that stay open. Redirects are returned as answers: the
// caller decides what the next host may receive. Uses proxies as libcurl does (http_proxy,
// https_proxy, no_proxy).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/http/answer.h"
#include "convoy/core/http/curl_library.h"

namespace convoy::hub {

// Returns true when the request must end. Called by several threads.
using StopTest = std::function<bool()>;

// The bytes of an answer without on_bytes are its body, at most kMostKeptBytes.
using HttpAnswer = http::Answer;

struct HttpRequest {
  std::string url;
  bool head = false;
  std::vector<std::string> headers = {};  // "Name: value"
  // Receives the bytes of an answer of status 200 or 206 as they arrive, instead of
  // HttpAnswer::body. An exception from it ends the request and is rethrown.
  std::function<void(const HttpAnswer& answer, std::string_view bytes)> on_bytes = {};
};

struct HttpLimits {
  int64_t connect_seconds = 15;
  int64_t stall_seconds = 30;     // without a single byte
  std::string certificates = {};  // file of trusted certificates; empty = the system's
};

// One thread.
class HttpClient {
 public:
  static constexpr size_t kMostKeptBytes = size_t{64} << 20;

  // `stop` is called about once a second, and when bytes arrive.
  HttpClient(const http::CurlLibrary& curl, HttpLimits limits, StopTest stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws NetworkError when no complete answer came, StopRequest after `stop`, ConfigError for an
  // invalid URL.
  HttpAnswer send(const HttpRequest& request);

 private:
  const http::CurlLibrary& curl_;
  HttpLimits limits_;
  StopTest stop_;
  CURL* handle_;
};

}  // namespace convoy::hub
