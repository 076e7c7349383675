// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 for a page on this machine: GET alone, one request a connection, small requests. Not for a network of strangers.
// (RFC 9112; the libraries that Debian has for it bring OpenSSL and a shared library of their own.)
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace convoy::page {

struct HttpRequest {
  std::string path{};                               // decoded, without the query
  std::multimap<std::string, std::string> query{};  // decoded
  std::map<std::string, std::string> headers{};     // names in lower case

  std::string parameter(const std::string& name) const;  // the first of the name, or empty
  std::string header(const std::string& name) const;     // `name` in lower case
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// Nothing where `text` is no request of this kind.
struct ParsedRequest {
  int refusal = 0;  // a status, when it is none: 400, 405
  HttpRequest request{};
};
ParsedRequest parse_request(const std::string& text);

class HttpServer {
 public:
  // Called on several threads at once; what it throws becomes status 500 with its text.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Listens. `host`: an IPv4 or IPv6 address or a name of this machine; port 0 = any that is free. Throws IoError.
  HttpServer(const std::string& host, int port, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  void run();   // returns after stop()
  void stop();  // from any thread, also before run()

 private:
  void serve_connections();
  void answer(int connection) const;

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
};

}  // namespace convoy::page
