// SPDX-License-Identifier: Apache-2.0
//
// HTTP requests in sequence over connections that stay open. Redirects are returned as answers: the
// caller decides what the next host may receive. Uses proxies as libcurl does (http_proxy,
// https_proxy, no_proxy).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/hub/curl_library.h"

namespace convoy::hub {

// Returns true when the request must end. Called by several threads.
using StopTest = std::function<bool()>;

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  // The bytes of an answer without on_bytes, at most kMostKeptBytes.
  std::string body = {};

  std::string header(const std::string& name) const;  // "" when absent
};

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
  HttpClient(const CurlLibrary& curl, HttpLimits limits, StopTest stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws NetworkError when no complete answer came, StopRequest after `stop`, ConfigError for an
  // invalid URL.
  HttpAnswer send(const HttpRequest& request);

 private:
  const CurlLibrary& curl_;
  HttpLimits limits_;
  StopTest stop_;
  CURL* handle_;
};

}  // namespace convoy::hub
