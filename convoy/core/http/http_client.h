// SPDX-License-Identifier: Apache-2.0
//
// A client for HTTP/1.1: any number of requests at once, over connections that stay open, on one
// thread of its own. Redirects are returned as answers: the caller decides what the next host may
// receive. Uses proxies as libcurl does (http_proxy, https_proxy, no_proxy).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/http/answer.h"
#include "convoy/core/http/curl_library.h"

namespace convoy::http {

struct Request {
  std::string url;                        // http:// or https://
  std::vector<std::string> headers = {};  // "Name: value"
  std::optional<std::string> body = {};   // POST with it; none: GET
  // On a connection of its own. On a kept one that breaks before any answer libcurl asks again by
  // itself, up to five times.
  bool fresh_connection = false;
};

// How a request ended. Whole: an answer of any status came. NoConnection: nothing of the request
// was sent. TimedOut and Broken: no whole answer came; the server may have computed one.
enum class RequestEnd { Whole, NoConnection, TimedOut, Broken };

struct RequestResult {
  RequestEnd end = RequestEnd::Whole;
  Answer answer = {};
  std::string why = {};  // there is no whole answer
};

struct ClientLimits {
  std::chrono::milliseconds connect_time = std::chrono::seconds(15);
  std::chrono::milliseconds whole_time = std::chrono::seconds(600);  // for a request and its answer
  size_t answer_bytes = size_t{64} << 20;
  std::string certificates = {};  // file of trusted certificates; empty = the system's
};

class Client {
 public:
  using OnEnd = std::function<void(RequestResult)>;

  // `curl` must outlive it.
  Client(const CurlLibrary& curl, ClientLimits limits);
  ~Client();  // cancels all requests
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Async. Thread-safe. `on_end` is called once, by the client's thread, which it must not hold up;
  // it throws nothing. Returns the number of the request.
  int64_t send(Request request, OnEnd on_end);
  // Thread-safe. The connection of the request is closed. Its `on_end` is not called, unless it has
  // begun by now.
  void cancel(int64_t number);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace convoy::http
