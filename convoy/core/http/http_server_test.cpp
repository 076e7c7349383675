// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/core/http/handler_threads.h"

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
  void end_sending() const { EXPECT_EQ(::shutdown(socket_.get(), SHUT_WR), 0); }
  // Reads until `end` has been received, or until the server closes the connection.
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

// A server for one request, whose exchange the test takes and answers.
class AskedServer {
 public:
  explicit AskedServer(const ServerLimits& limits = {})
      : server_("127.0.0.1", 0, limits, [this](std::unique_ptr<Exchange> exchange) {
          asked_.set_value(std::move(exchange));
        }) {}
  int port() const { return server_.port(); }
  std::unique_ptr<Exchange> exchange() { return asked_.get_future().get(); }

 private:
  std::promise<std::unique_ptr<Exchange>> asked_;
  Server server_;
};

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
  AskedServer server;
  const Connection client(server.port());
  client.send(closing("GET /"));
  std::unique_ptr<Exchange> exchange = server.exchange();
  exchange->start(200, {{"content-type", "text/event-stream"}});
  EXPECT_TRUE(exchange->send("one"));
  EXPECT_NE(client.read("one").find("one"), std::string::npos);
  EXPECT_TRUE(exchange->send("two"));
  EXPECT_NE(client.read("two").find("two"), std::string::npos);
  exchange.reset();
  EXPECT_NE(client.read().find("0\r\n\r\n"), std::string::npos);  // the last chunk
}

TEST(HttpServer, NoticesThatAClientLeft) {
  AskedServer server;
  std::unique_ptr<Exchange> exchange;
  {
    const Connection client(server.port());
    client.send(closing("GET /"));
    exchange = server.exchange();
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
  EXPECT_NE(slow_head.read().find("HTTP/1.1 408 "), std::string::npos);
  const Connection silent(server.port());
  EXPECT_EQ(silent.read(), "");
}

TEST(HttpServer, ErrorsHaveTheFormOfTheProgram) {
  Server server(
      "127.0.0.1", 0, {.body_bytes = 10, .request_time = std::chrono::milliseconds(200)},
      [](const std::unique_ptr<Exchange>&) {},
      [](int status, std::string_view why) {
        return ErrorAnswer{"x/error", std::to_string(status) + ": " + std::string(why)};
      });
  const auto expect_error = [&server](const std::string& request, const std::string& status) {
    const Connection client(server.port());
    client.send(request);
    const std::string answer = client.read();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status + " ")) << answer;
    EXPECT_NE(answer.find("content-type: x/error\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("\r\n\r\n" + status + ": the "), std::string::npos) << answer;
  };
  expect_error("no request\r\n\r\n", "400");
  expect_error("GET / HTTP/9.9\r\n\r\n", "400");
  expect_error("GET /" + std::string(65534, 'a') + " HTTP/1.1\r\n", "414");
  expect_error("GET / HTTP/1.1\r\nA: " + std::string(1 << 20, 'a') + "\r\n\r\n", "431");
  expect_error(closing("POST /", "more than ten bytes"), "413");
  expect_error("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab", "408");
  expect_error("GET / HT", "408");
  expect_error(closing("GET /"), "500");
}

TEST(HttpServer, AnErrorAfterAnAnswerHasItsFormToo) {
  Server server("127.0.0.1", 0, {}, [](std::unique_ptr<Exchange> exchange) {
    exchange->respond(200, {}, "HTTP/1.1 400 is no error here");
  });
  const Connection client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.read("here").find("200 OK"), std::string::npos);
  client.send("no request\r\n\r\n");
  EXPECT_NE(client.read().find("\r\n\r\nthe request is not valid"), std::string::npos);
  const Connection both(server.port());
  both.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nno request\r\n\r\n");
  const std::string answers = both.read();
  EXPECT_NE(answers.find("is no error here"), std::string::npos) << answers;
  EXPECT_NE(answers.find("\r\n\r\nthe request is not valid"), std::string::npos) << answers;
}

// With `Expect: 100-continue`, the client sends the body only after the server's answer 100.
TEST(HttpServer, RefusesALargeBodyBeforeItIsSent) {
  Server server("127.0.0.1", 0, {.body_bytes = 10}, [](std::unique_ptr<Exchange> exchange) {
    exchange->respond(200, {}, exchange->body());
  });
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n";
  const Connection large(server.port());
  large.send(head + "Content-Length: 11\r\n\r\n");
  EXPECT_TRUE(large.read().starts_with("HTTP/1.1 413 "));
  const Connection small(server.port());
  small.send(head + "Content-Length: 3\r\n\r\n");
  EXPECT_TRUE(small.read("\r\n\r\n").starts_with("HTTP/1.1 100 "));
  small.send("abc");
  EXPECT_NE(small.read("abc").find("200 OK"), std::string::npos);
}

TEST(HttpServer, AClientThatIsStillSendingGetsItsRefusal) {
  Server server("127.0.0.1", 0, {.body_bytes = 10},
                [](std::unique_ptr<Exchange> exchange) { exchange->respond(200, {}, "ok"); });
  const Connection client(server.port());
  client.send(closing("POST /", std::string(4 << 20, 'x')));
  EXPECT_TRUE(client.read().starts_with("HTTP/1.1 413 "));
}

TEST(HttpServer, AClientThatEndsItsSendingIsAnswered) {
  std::promise<std::unique_ptr<Exchange>> asked[3];
  std::atomic<int> num_asked = 0;
  Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<Exchange> exchange) {
    asked[num_asked++].set_value(std::move(exchange));
  });
  for (const int version : {0, 1}) {
    const Connection client(server.port());
    client.send("POST / HTTP/1." + std::to_string(version) + "\r\nContent-Length: 2\r\n\r\nab");
    client.end_sending();
    std::unique_ptr<Exchange> exchange = asked[version].get_future().get();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // lets the server see the end
    EXPECT_TRUE(exchange->is_open());
    exchange->respond(200, {}, "whole");
    exchange.reset();
    const std::string answer = client.read();
    EXPECT_NE(answer.find(" 200 OK"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("whole")) << answer;
  }
  const Connection client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::unique_ptr<Exchange> exchange = asked[2].get_future().get();
  exchange->start(200, {});
  exchange->send("one");
  EXPECT_NE(client.read("one").find("200 OK"), std::string::npos);
  client.end_sending();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(exchange->send("two"));
  exchange.reset();
  const std::string answer = client.read();
  EXPECT_NE(answer.find("two"), std::string::npos) << answer;
  EXPECT_EQ(answer.find(" 100 "), std::string::npos) << answer;
}

TEST(HttpServer, ABodyThatEndsEarlyIsRefused) {
  Server server("127.0.0.1", 0, {},
                [](std::unique_ptr<Exchange> exchange) { exchange->respond(200, {}, "ok"); });
  const Connection client(server.port());
  client.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  client.end_sending();
  EXPECT_TRUE(client.read().starts_with("HTTP/1.1 400 "));
}

TEST(HttpServer, UnpacksGzipUpToTheLimitOfABody) {
  const auto gzip_of_hello = [] {
    return std::string(
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05"
        "\x00\x00\x00",
        25);
  };
  const auto answer = [&](int64_t body_bytes, const std::string& encoding,
                          const std::string& body) {
    Server server("127.0.0.1", 0, {.body_bytes = body_bytes}, [](std::unique_ptr<Exchange> one) {
      one->respond(200, {}, std::string(one->body()));
    });
    const Connection client(server.port());
    client.send("POST / HTTP/1.1\r\nConnection: close\r\nContent-Encoding: " + encoding +
                "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read();
  };
  EXPECT_TRUE(answer(100, "gzip", gzip_of_hello()).ends_with("hello"));
  EXPECT_TRUE(answer(100, "identity", "plain").ends_with("plain"));
  EXPECT_TRUE(answer(100, "gzip, identity", gzip_of_hello()).ends_with("hello"));
  EXPECT_TRUE(answer(100, "Identity,X-GZIP", gzip_of_hello()).ends_with("hello"));
  EXPECT_TRUE(answer(100, "identity, identity", "plain").ends_with("plain"));
  EXPECT_TRUE(
      answer(100, "gzip\r\nContent-Encoding: identity", gzip_of_hello()).ends_with("hello"));
  EXPECT_TRUE(answer(100, "gzip, br", gzip_of_hello()).starts_with("HTTP/1.1 415 "));
  EXPECT_TRUE(answer(100, "gzip, gzip", gzip_of_hello()).starts_with("HTTP/1.1 415 "));
  EXPECT_TRUE(answer(100, "gzip", "plain").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(answer(100, "br", "plain").starts_with("HTTP/1.1 415 "));
  // The body exceeds the limit only once it is decompressed.
  const std::string zeros(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x30\x18\x1e\x00\x00\x56\x83\xc0\x80\xc8\x00\x00"
      "\x00",
      24);
  EXPECT_TRUE(answer(100, "gzip", zeros).starts_with("HTTP/1.1 413 "));
}

TEST(HttpServer, NoticesThatTheClientOfAStreamLeft) {
  AskedServer server;
  std::unique_ptr<Exchange> exchange;
  {
    const Connection client(server.port());
    client.send(closing("GET /"));
    exchange = server.exchange();
    exchange->start(200, {});
    exchange->send("one");
    EXPECT_NE(client.read("one").find("one"), std::string::npos);
  }
  while (exchange->send("x")) std::this_thread::yield();  // CTest's time limit ends a failure
}

TEST(HttpServer, AClientThatReadsNothingIsGoneAtTheLimit) {
  AskedServer server({.pending_bytes = 1 << 16});
  const Connection client(server.port());
  client.send(closing("GET /"));
  std::unique_ptr<Exchange> exchange = server.exchange();
  exchange->start(200, {});
  const std::string part(4096, 'x');
  int64_t sent = 0;
  while (exchange->send(part)) sent += std::ssize(part);
  EXPECT_GE(sent, 1 << 16);
}

TEST(HttpServer, AnAnswerOfOnePartHasNoBoundOfParts) {
  const std::string body(1 << 20, 'x');
  Server server("127.0.0.1", 0, {.pending_bytes = 1 << 10},
                [&](std::unique_ptr<Exchange> one) { one->respond(200, {}, body); });
  const Connection client(server.port());
  client.send(closing("GET /"));
  EXPECT_GT(client.read().size(), body.size());
}

TEST(HttpServer, AClientThatTakesNothingOfItsAnswerIsLeft) {
  AskedServer server({.pending_bytes = 64 << 20, .silence_time = std::chrono::milliseconds(200)});
  const Connection client(server.port());
  client.send(closing("GET /"));
  std::unique_ptr<Exchange> exchange = server.exchange();
  exchange->start(200, {});
  exchange->send(std::string(32 << 20, 'x'));             // more than the sockets' buffers hold
  while (exchange->is_open()) std::this_thread::yield();  // CTest's time limit ends a failure
}

// Clients that send nothing and clients that stop within the request line occupy all places.
TEST(HttpServer, ANewClientGetsThePlaceOfOneThatIsNotAnswered) {
  Server server("127.0.0.1", 0, {.clients = 4, .request_time = std::chrono::hours(1)},
                [](std::unique_ptr<Exchange> exchange) { exchange->respond(200, {}, "ok"); });
  std::vector<Connection> slow;
  for (int client = 0; client < 8; ++client) {
    slow.emplace_back(server.port());
    if (client % 2 == 0) slow.back().send("GET / HT");
  }
  const Connection quick(server.port());
  quick.send(closing("GET /"));
  EXPECT_NE(quick.read().find("200 OK"), std::string::npos);
  EXPECT_EQ(slow.front().read(), "");  // the server closed the connection
}

TEST(HttpServer, AClientThatIsAnsweredKeepsItsPlace) {
  std::promise<std::unique_ptr<Exchange>> asked[2];
  std::atomic<int> num_asked = 0;
  Server server("127.0.0.1", 0, {.clients = 1}, [&](std::unique_ptr<Exchange> exchange) {
    asked[num_asked++].set_value(std::move(exchange));
  });
  const Connection first(server.port());
  first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::unique_ptr<Exchange> exchange = asked[0].get_future().get();
  const Connection second(server.port());
  second.send(closing("GET /"));
  exchange->respond(200, {}, "one");
  exchange.reset();
  EXPECT_NE(first.read("one").find("200 OK"), std::string::npos);
  exchange = asked[1].get_future().get();  // the first client has its answer, so its place is free
  exchange->respond(200, {}, "two");
  exchange.reset();
  EXPECT_NE(second.read().find("200 OK"), std::string::npos);
}

TEST(HandlerThreads, ASlowRequestKeepsNoOtherBack) {
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  HandlerThreads threads(2, [release](std::unique_ptr<Exchange> exchange) {
    if (exchange->path() == "/slow") release.wait();
    exchange->respond(200, {}, exchange->path());
  });
  Server server("127.0.0.1", 0, {},
                [&](std::unique_ptr<Exchange> exchange) { threads.take(std::move(exchange)); });
  const Connection slow(server.port());
  slow.send(closing("GET /slow"));
  for (int request = 0; request < 3; ++request) {
    const Connection quick(server.port());
    quick.send(closing("GET /quick"));
    EXPECT_NE(quick.read().find("/quick"), std::string::npos);
  }
  released.set_value();
  EXPECT_NE(slow.read().find("/slow"), std::string::npos);
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
