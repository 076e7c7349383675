// SPDX-License-Identifier: Apache-2.0
//
// HTTP requests one after another over connections that stay open. Redirects are answers here: who
// follows one decides what the next host may see. Proxies as libcurl has them (http_proxy,
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

// True once all is to end. Called by several threads.
using StopTest = std::function<bool()>;

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};  // of answers whose bytes no one took: at most kMostKeptBytes

  std::string header(const std::string& name) const;  // "" when absent
};

struct HttpRequest {
  std::string url;
  bool head = false;
  std::vector<std::string> headers = {};  // "Name: value"
  // Takes the bytes of an answer of status 200 or 206 as they come, instead of HttpAnswer::body.
  // What it throws ends the request and is thrown on.
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

  // `stop` is asked about once a second, and when bytes come.
  HttpClient(const CurlLibrary& curl, HttpLimits limits, StopTest stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws NetworkError when no whole answer came, StopRequest after `stop`, ConfigError for a URL
  // that is none.
  HttpAnswer send(const HttpRequest& request);

 private:
  const CurlLibrary& curl_;
  HttpLimits limits_;
  StopTest stop_;
  CURL* handle_;
};

}  // namespace convoy::hub
