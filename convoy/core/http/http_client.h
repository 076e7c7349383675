// SPDX-License-Identifier: Apache-2.0
//
// A client for HTTP/1.1: any number of requests at once, over connections that stay open, on one
// thread of its own. Redirects are returned as answers: the caller decides what the next host may
// receive. Uses proxies as libcurl does (http_proxy, https_proxy, no_proxy).
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/http/answer.h"
#include "convoy/core/http/curl_library.h"

namespace convoy::http {

struct Request {
  std::string url;                        // http:// or https://
  std::vector<std::string> headers = {};  // "Name: value"
  std::optional<std::string> body = {};   // POST with it; none: GET
  bool head = false;                      // HEAD
  // On a connection of its own. On a kept one that breaks before any answer libcurl asks again by
  // itself, up to five times.
  bool fresh_connection = false;
  // By the client's thread: receives the bytes of an answer of status 2xx as they arrive, in no
  // coding, in place of Answer::body. An exception from it ends the request:
  // RequestResult::failure.
  std::function<void(const Answer& answer, std::string_view bytes)> on_bytes = {};
  // By the client's thread, about once a second and when bytes arrive: true ends the request.
  std::function<bool()> must_end = {};
};

// How a request ended. Whole: an answer of any status came. NoConnection: nothing of the request
// was sent. TimedOut and Broken: no whole answer came; the server may have computed one.
enum class RequestEnd { Whole, NoConnection, TimedOut, Broken };

struct RequestResult {
  RequestEnd end = RequestEnd::Whole;
  Answer answer = {};
  std::string why = {};  // there is no whole answer
  CURLcode code = CURLE_OK;
  bool is_too_long = false;         // the body passed ClientLimits::answer_bytes
  std::exception_ptr failure = {};  // what on_bytes threw
};

struct ClientLimits {
  std::chrono::milliseconds connect_time = std::chrono::seconds(15);
  // For a request and its answer, and without a single byte; 0 = any time.
  std::chrono::milliseconds whole_time = std::chrono::seconds(600);
  std::chrono::seconds stall_time = std::chrono::seconds(0);
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
