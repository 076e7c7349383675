// SPDX-License-Identifier: Apache-2.0
//
// A client for HTTP/1.1: any number of requests at once, over connections that stay open, on one
// thread of its own. Redirects are returned as answers: the caller decides what the next host may
// receive. Uses proxies as libcurl does (http_proxy, https_proxy, no_proxy), except for servers of
// this machine, which are asked without.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/http/answer.h"
#include "convoy/core/http/curl_library.h"

namespace convoy::http {

// A body that is read while it is sent, so that memory holds a piece of it only.
struct Upload {
  std::string_view method = "PUT";  // or "POST"
  int64_t size_bytes = 0;
  // Called on the client's thread. Writes at most `most` bytes of the body, from offset `begin` on,
  // to `into` and returns their number, at least 1. An offset is 0 again when libcurl repeats the
  // request. An exception ends the request and becomes RequestResult::failure.
  std::function<size_t(int64_t begin, char* into, size_t most)> read = {};
};

struct Request {
  std::string url;                        // http:// or https://
  std::vector<std::string> headers = {};  // "Name: value"
  std::optional<std::string> body = {};   // POST with this body; nullopt: GET
  std::optional<Upload> upload = {};      // in place of `body`
  bool head = false;                      // true: send HEAD
  // Opens a new connection for the request. When a kept connection breaks before any answer,
  // libcurl repeats the request by itself, up to five times.
  bool fresh_connection = false;
  // Called on the client's thread. Receives the bytes of an answer of status 2xx as they arrive,
  // not compressed, in place of Answer::body. An exception from it ends the request and becomes
  // RequestResult::failure.
  std::function<void(const Answer& answer, std::string_view bytes)> on_bytes = {};
  // Called on the client's thread, about once a second and when bytes arrive. True ends the
  // request.
  std::function<bool()> must_end = {};
};

// How a request ended. Whole: an answer of any status came. NoConnection: nothing of the request
// was sent. TimedOut and Broken: no whole answer came; the server may have computed one.
enum class RequestEnd { Whole, NoConnection, TimedOut, Broken };

struct RequestResult {
  RequestEnd end = RequestEnd::Whole;
  Answer answer = {};
  std::string why = {};  // why there is no whole answer
  CURLcode code = CURLE_OK;
  bool is_too_long = false;         // the body passed ClientLimits::answer_bytes
  std::exception_ptr failure = {};  // what on_bytes or Upload::read threw
};

struct ClientLimits {
  std::chrono::milliseconds connect_time = std::chrono::seconds(15);
  // Limit of a request with its answer, and limit of a time without a single byte; 0 = no limit.
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

  // Async. Thread-safe. `on_end` is called once, on the client's thread; it must not block and must
  // not throw. Returns the number of the request.
  int64_t send(Request request, OnEnd on_end);
  // Async. Thread-safe. As send(), for a caller that waits for the result.
  std::future<RequestResult> ask(Request request);
  // Thread-safe. Closes the connection of the request. `on_end` is not called, unless its call has
  // already begun.
  void cancel(int64_t number);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace convoy::http
