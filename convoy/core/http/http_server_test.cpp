// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <mutex>
#include <thread>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"

namespace convoy::http {
namespace {

class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }
  void send(const std::string& text) const {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  // Until `end` has come, or the server closes.
  std::string read(const std::string& end = {}) const {
    std::string read;
    char buffer[4096];
    while (end.empty() || read.find(end) == std::string::npos) {
      const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (count <= 0) break;
      read.append(buffer, static_cast<size_t>(count));
    }
    return read;
  }

 private:
  Descriptor socket_;
};

std::string closing(const std::string& line, const std::string& body = {}) {
  return line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(HttpServer, AnswersARequestWithWhatItSaid) {
  Server server("127.0.0.1", 0, {}, [](std::unique_ptr<Exchange> exchange) {
    const std::string body = std::string(exchange->method()) + " " + std::string(exchange->path()) +
                             " " + std::string(exchange->header("host")) + " " +
                             std::string(exchange->body()) + std::string(exchange->header("none"));
    exchange->respond(201, {{"x-convoy", "yes"}}, body);
  });
  const Connection client(server.port());
  client.send(closing("POST /a/b?c=d", "hello"));
  const std::string answer = client.read();
  EXPECT_NE(answer.find("HTTP/1.1 201 "), std::string::npos) << answer;
  EXPECT_NE(answer.find("x-convoy: yes"), std::string::npos);
  EXPECT_NE(answer.find("\r\n\r\nPOST /a/b x hello"), std::string::npos) << answer;
}

TEST(HttpServer, KeepsAConnectionForFurtherRequests) {
  Server server("127.0.0.1", 0, {}, [](std::unique_ptr<Exchange> exchange) {
    exchange->respond(200, {}, exchange->path());
  });
  const Connection client(server.port());
  for (const std::string path : {"/first", "/second"}) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(client.read(path).find("200 OK"), std::string::npos);
  }
}

TEST(HttpServer, SendsPartsWhenTheyCome) {
  std::promise<std::unique_ptr<Exchange>> asked;
  Server server("127.0.0.1", 0, {},
                [&](std::unique_ptr<Exchange> exchange) { asked.set_value(std::move(exchange)); });
  const Connection client(server.port());
  client.send(closing("GET /"));
  std::unique_ptr<Exchange> exchange = asked.get_future().get();
  exchange->start(200, {{"content-type", "text/event-stream"}});
  EXPECT_TRUE(exchange->send("one"));
  EXPECT_NE(client.read("one").find("one"), std::string::npos);
  EXPECT_TRUE(exchange->send("two"));
  EXPECT_NE(client.read("two").find("two"), std::string::npos);
  exchange.reset();
  EXPECT_NE(client.read().find("0\r\n\r\n"), std::string::npos);  // the last chunk
}

TEST(HttpServer, NoticesThatAClientLeft) {
  std::promise<std::unique_ptr<Exchange>> asked;
  Server server("127.0.0.1", 0, {},
                [&](std::unique_ptr<Exchange> exchange) { asked.set_value(std::move(exchange)); });
  std::unique_ptr<Exchange> exchange;
  {
    const Connection client(server.port());
    client.send(closing("GET /"));
    exchange = asked.get_future().get();
    EXPECT_TRUE(exchange->is_open());
  }
  while (exchange->is_open()) std::this_thread::yield();  // CTest's time limit ends a failure
  exchange->start(200, {});
  EXPECT_FALSE(exchange->send("for nobody"));
}

TEST(HttpServer, AnUnansweredRequestIsAnError) {
  Server server("127.0.0.1", 0, {}, [](const std::unique_ptr<Exchange>&) {});
  const Connection client(server.port());
  client.send(closing("GET /"));
  EXPECT_NE(client.read().find("HTTP/1.1 500 "), std::string::npos);
}

TEST(HttpServer, RefusesTooLargeAndTooSlowRequests) {
  Server server("127.0.0.1", 0, {.body_bytes = 10, .request_time = std::chrono::milliseconds(200)},
                [](std::unique_ptr<Exchange> exchange) { exchange->respond(200, {}, "ok"); });
  const Connection large(server.port());
  large.send(closing("POST /", "more than ten bytes"));
  EXPECT_NE(large.read().find("HTTP/1.1 413 "), std::string::npos);
  const Connection slow_body(server.port());
  slow_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_NE(slow_body.read().find("HTTP/1.1 408 "), std::string::npos);
  const Connection slow_head(server.port());
  slow_head.send("GET / HT");
  EXPECT_EQ(slow_head.read().find("200 OK"), std::string::npos);  // closed, in whichever words
}

TEST(HttpServer, AClientThatReadsNothingIsGoneAtTheLimit) {
  std::promise<std::unique_ptr<Exchange>> asked;
  Server server("127.0.0.1", 0, {.pending_bytes = 1 << 16},
                [&](std::unique_ptr<Exchange> one) { asked.set_value(std::move(one)); });
  const Connection client(server.port());
  client.send(closing("GET /"));
  std::unique_ptr<Exchange> exchange = asked.get_future().get();
  exchange->start(200, {});
  const std::string part(4096, 'x');
  int64_t sent = 0;
  while (exchange->send(part)) sent += std::ssize(part);
  EXPECT_GE(sent, 1 << 16);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  Server first("127.0.0.1", 0, {}, [](const std::unique_ptr<Exchange>&) {});
  try {
    const Server second("127.0.0.1", first.port(), {}, [](const std::unique_ptr<Exchange>&) {});
    ADD_FAILURE() << "two servers on one port";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("ddress"), std::string::npos) << error.what();
    EXPECT_NE(error.sentence().find("--port"), std::string::npos);
  }
}

}  // namespace
}  // namespace convoy::http
