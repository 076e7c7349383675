// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 for a page on this machine: GET and HEAD, one request per connection, small requests.
// Not for untrusted networks. (RFC 9112; Debian's HTTP libraries would add OpenSSL and another
// shared library.)
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/descriptor.h"

namespace convoy::page {

struct HttpRequest {
  std::string path{};                               // decoded, without the query
  std::multimap<std::string, std::string> query{};  // decoded
  std::map<std::string, std::string> headers{};     // names in lower case
  bool without_body = false;                        // HEAD: the client asks for the headers alone

  std::string parameter(const std::string& name) const;  // the first of the name, or empty
  std::string header(const std::string& name) const;     // `name` in lower case
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// Empty when `text` is not such a request.
struct ParsedRequest {
  int refusal = 0;  // a status, when it is none: 400, 405
  HttpRequest request{};
};
ParsedRequest parse_request(const std::string& text);

class HttpServer {
 public:
  // Called on several threads at once; an exception becomes status 500 with its text.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Listens. `host`: an IPv4 or IPv6 address or a name of this machine; port 0 = any free port.
  // `head_time`: time limit for a client to send its request. Throws IoError.
  HttpServer(const std::string& host, int port, Handler handler,
             std::chrono::milliseconds head_time = std::chrono::seconds(5));
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  void run();   // returns after stop()
  void stop();  // from any thread, also before run()

 private:
  // A client whose request is incomplete or waiting for its answer.
  struct Client {
    Descriptor connection;
    std::string head{};
    std::chrono::steady_clock::time_point deadline{};
  };

  void take_heads();
  bool accept_client(std::vector<Client>& clients) const;
  void hand_over(Client client);
  void answer_clients();
  void answer(const Client& client) const;

  Handler handler_;
  std::chrono::milliseconds head_time_;
  Descriptor listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Client> asked_;  // their requests are complete
  bool ends_ = false;
};

}  // namespace convoy::page
