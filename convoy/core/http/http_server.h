// SPDX-License-Identifier: Apache-2.0
//
// A server for HTTP/1.1, over hyper in the Rust library: requests come whole, answers go out whole
// or in parts from any thread. A slow or lost client occupies a connection, but no thread. There is
// no TLS: for clients on other machines a proxy adds it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct ConvoyHttpExchange;
struct ConvoyHttpServer;

namespace convoy::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// One request, and its answer: respond(), or start() and then send() for each part. Without an
// answer the client gets status 500. The answer ends with the exchange. One thread at a time.
// A client that closes its sending side after the request still gets the answer.
class Exchange {
 public:
  explicit Exchange(ConvoyHttpExchange* exchange) : exchange_(exchange) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Valid as long as the exchange.
  std::string_view method() const;
  std::string_view target() const;  // path and query, as sent
  std::string_view path() const;
  std::string_view header(std::string_view name) const;  // the first header of that name, or empty
  std::string_view body() const;

  void respond(int status, const Headers& headers, std::string_view body);
  void start(int status, const Headers& headers);
  // False when the client is gone, or has left too much unread.
  bool send(std::string_view part);
  // False when the client is gone. Long work checks it between its steps, so that it stops when
  // nobody waits.
  bool is_open() const;

 private:
  ConvoyHttpExchange* exchange_;
};

struct ServerLimits {
  // Most bytes of a request's body; a larger one is answered with 413.
  int64_t body_bytes = 16 << 20;
  int64_t pending_bytes = 4 << 20;  // most unread bytes of an answer in parts
  // Most connections. For a further client the oldest connection without an answer under way is
  // closed.
  int64_t clients = 1024;
  std::chrono::milliseconds request_time = std::chrono::seconds(30);  // to receive a request
  // The connection is closed when the client reads nothing for this time.
  std::chrono::milliseconds silence_time = std::chrono::seconds(30);
};

struct ErrorAnswer {
  std::string content_type;
  std::string body;
};

ErrorAnswer plain_error(int status, std::string_view why);

class Server {
 public:
  // Called on a thread of the server. It must not block: it answers at once, or gives the exchange
  // to another thread.
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;
  // Makes the answer to a request that does not reach the handler (too large, too slow, no HTTP) or
  // that the handler does not answer. Called on a thread of the server; throws nothing.
  using ErrorWriter = std::function<ErrorAnswer(int status, std::string_view why)>;

  // Listens at once. From now on the process ignores SIGPIPE. `host`: an address or a name of this
  // machine; port 0: any free one. Throws IoError.
  Server(const std::string& host, int port, const ServerLimits& limits, Handler handler,
         ErrorWriter error_writer = plain_error);
  // Accepts nothing more and waits up to `stop_time` for the answers that are under way.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  std::chrono::milliseconds stop_time = std::chrono::seconds(5);

 private:
  struct Calls;  // from the Rust library

  Handler handler_;
  ErrorWriter error_writer_;
  ConvoyHttpServer* server_ = nullptr;
};

}  // namespace convoy::http
