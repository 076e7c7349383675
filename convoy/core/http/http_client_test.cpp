// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <mutex>
#include <thread>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/core/http/http_server.h"

namespace convoy::http {
namespace {

const CurlLibrary& curl() {
  static const CurlLibrary library;
  return library;
}

std::string address_of(int port, const std::string& path = "/") {
  return "http://127.0.0.1:" + std::to_string(port) + path;
}

RequestResult sent(Client& client, Request request) {
  std::promise<RequestResult> ended;
  client.send(std::move(request),
              [&](RequestResult result) { ended.set_value(std::move(result)); });
  return ended.get_future().get();
}

// A server that accepts a single connection. It sends the next text of `answers` after the head of
// each request.
class OneConnection {
 public:
  explicit OneConnection(std::vector<std::string> answers)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)), answers_(std::move(answers)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), plain, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), plain, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneConnection() { thread_.join(); }

  int port() const { return port_; }

 private:
  void serve() {
    const Descriptor socket(::accept(listener_.get(), nullptr, nullptr));
    listener_ = Descriptor();
    for (const std::string& answer : answers_) {
      std::string read;
      char buffer[4096];
      while (read.find("\r\n\r\n") == std::string::npos) {
        const ssize_t count = ::recv(socket.get(), buffer, sizeof buffer, 0);
        if (count <= 0) return;
        read.append(buffer, static_cast<size_t>(count));
      }
      ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    if (answers_.back().empty()) {  // the last answer is empty: waits until the client closes
      char byte = 0;
      ::recv(socket.get(), &byte, 1, 0);
    }
  }

  Descriptor listener_;
  std::vector<std::string> answers_;
  int port_ = 0;
  std::thread thread_;
};

TEST(HttpClient, SendsManyRequestsAtOnce) {
  constexpr size_t kRequests = 64;
  std::mutex mutex;
  std::vector<std::unique_ptr<Exchange>> waiting;
  Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<Exchange> exchange) {
    const std::lock_guard<std::mutex> lock(mutex);
    waiting.push_back(std::move(exchange));
    if (waiting.size() < kRequests) return;
    for (const auto& one : waiting)
      one->respond(200, {},
                   std::string(one->method()) + " " + std::string(one->header("x-name")) + " " +
                       std::string(one->body()));
    waiting.clear();
  });
  Client client(curl(), {});
  std::vector<std::promise<RequestResult>> ends(kRequests);
  for (size_t number = 0; number < kRequests; ++number)
    client.send(
        {.url = address_of(server.port()),
         .headers = {"x-name: " + std::to_string(number)},
         .body = "body " + std::to_string(number)},
        [&ends, number](RequestResult result) { ends[number].set_value(std::move(result)); });
  for (size_t number = 0; number < kRequests; ++number) {
    const RequestResult result = ends[number].get_future().get();
    EXPECT_EQ(result.end, RequestEnd::Whole) << result.why;
    const std::string name = std::to_string(number);
    EXPECT_EQ(result.answer.body, "POST " + name + " body " + name);
  }
}

TEST(HttpClient, ReturnsStatusHeadersAndRedirectsAsTheyCome) {
  Server server("127.0.0.1", 0, {}, [](std::unique_ptr<Exchange> exchange) {
    exchange->respond(307, {{"Location", "/other"}, {"Retry-After", "7"}}, exchange->method());
  });
  Client client(curl(), {});
  const RequestResult result = sent(client, {.url = address_of(server.port())});
  EXPECT_EQ(result.end, RequestEnd::Whole);
  EXPECT_EQ(result.answer.status, 307);
  EXPECT_EQ(result.answer.header("retry-after"), "7");
  EXPECT_EQ(result.answer.header("location"), "/other");
  EXPECT_EQ(result.answer.body, "GET");
  EXPECT_THROW(client.send({.url = "ftp://x/"}, [](RequestResult) {}), ConfigError);
}

TEST(HttpClient, KeepsItsConnection) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  const OneConnection server({answer, "HTTP/1.1 100 Continue\r\nX-No: 1\r\n\r\n" + answer, answer});
  Client client(curl(), {});
  for (int request = 0; request < 3; ++request) {
    const RequestResult result = sent(client, {.url = address_of(server.port())});
    EXPECT_EQ(result.end, RequestEnd::Whole) << result.why;
    EXPECT_EQ(result.answer.body, "ok");
    EXPECT_EQ(result.answer.header("x-no"), "");
  }
}

TEST(HttpClient, SaysHowARequestFailed) {
  Client client(curl(), {.answer_bytes = 8});
  int closed_port = 0;
  {
    const OneConnection half({"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"});
    closed_port = half.port();
    const RequestResult broken = sent(client, {.url = address_of(half.port())});
    EXPECT_EQ(broken.end, RequestEnd::Broken);
    EXPECT_FALSE(broken.why.empty());
  }
  EXPECT_EQ(sent(client, {.url = address_of(closed_port)}).end, RequestEnd::NoConnection);
  {
    const OneConnection silent({""});
    Client hasty(curl(), {.whole_time = std::chrono::milliseconds(300)});
    EXPECT_EQ(sent(hasty, {.url = address_of(silent.port())}).end, RequestEnd::TimedOut);
  }
  const OneConnection long_one({"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnine char"});
  const RequestResult too_long = sent(client, {.url = address_of(long_one.port())});
  EXPECT_EQ(too_long.end, RequestEnd::Broken);
  EXPECT_EQ(too_long.why, "an answer of more than 8 bytes");
}

TEST(HttpClient, CancelsARequestAndKeepsTheOthers) {
  std::promise<std::unique_ptr<Exchange>> asked;
  Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<Exchange> exchange) {
    if (exchange->path() == "/held")
      asked.set_value(std::move(exchange));
    else
      exchange->respond(200, {}, "quick");
  });
  Client client(curl(), {});
  std::atomic<bool> called = false;
  const int64_t number = client.send({.url = address_of(server.port(), "/held")},
                                     [&](RequestResult) { called = true; });
  const std::unique_ptr<Exchange> held = asked.get_future().get();
  EXPECT_TRUE(held->is_open());
  client.cancel(number);
  client.cancel(number + 100);
  EXPECT_EQ(sent(client, {.url = address_of(server.port())}).answer.body, "quick");
  while (held->is_open()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(called);
}

TEST(HttpClient, HandsOutBytesAsTheyArrive) {
  const std::string text(1 << 20, 'x');
  Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<Exchange> exchange) {
    exchange->respond(200, {{"x-method", std::string(exchange->method())}}, text);
  });
  Client client(curl(), {.answer_bytes = 8});
  std::string received;
  Request request{.url = address_of(server.port())};
  request.on_bytes = [&](const Answer& answer, std::string_view bytes) {
    EXPECT_EQ(answer.status, 200);
    received += bytes;
  };
  const RequestResult whole = sent(client, request);
  EXPECT_EQ(whole.end, RequestEnd::Whole) << whole.why;
  EXPECT_EQ(whole.answer.body, "");
  EXPECT_EQ(received, text);
  request.on_bytes = [](const Answer&, std::string_view) { throw DataError("too many"); };
  const RequestResult refused = sent(client, request);
  EXPECT_NE(refused.end, RequestEnd::Whole);
  EXPECT_THROW(std::rethrow_exception(refused.failure), DataError);
  const RequestResult head = sent(client, {.url = address_of(server.port()), .head = true});
  EXPECT_EQ(head.end, RequestEnd::Whole) << head.why;
  EXPECT_EQ(head.answer.header("x-method"), "HEAD");
}

TEST(HttpClient, KeepsTheBodyOfARefusalWithinItsLimit) {
  Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<Exchange> exchange) {
    exchange->respond(403, {}, exchange->path() == "/short" ? "no" : std::string(64, 'x'));
  });
  Client client(curl(), {.answer_bytes = 8});
  Request request{.url = address_of(server.port(), "/short")};
  request.on_bytes = [](const Answer&, std::string_view) { FAIL() << "no success"; };
  EXPECT_EQ(sent(client, request).answer.body, "no");
  request.url = address_of(server.port(), "/long");
  const RequestResult refused = sent(client, request);
  EXPECT_NE(refused.end, RequestEnd::Whole);
  EXPECT_TRUE(refused.is_too_long);
}

TEST(HttpClient, EndsARequestThatMustEnd) {
  std::promise<std::unique_ptr<Exchange>> asked;
  Server server("127.0.0.1", 0, {},
                [&](std::unique_ptr<Exchange> exchange) { asked.set_value(std::move(exchange)); });
  Client client(curl(), {});
  std::atomic<bool> must_end = false;
  std::promise<RequestResult> ended;
  client.send({.url = address_of(server.port()), .must_end = [&] { return must_end.load(); }},
              [&](RequestResult result) { ended.set_value(std::move(result)); });
  const std::unique_ptr<Exchange> held = asked.get_future().get();
  must_end = true;
  EXPECT_EQ(ended.get_future().get().code, CURLE_ABORTED_BY_CALLBACK);
}

TEST(HttpClient, EndsWithRequestsUnderWay) {
  std::promise<std::unique_ptr<Exchange>> asked;
  Server server("127.0.0.1", 0, {},
                [&](std::unique_ptr<Exchange> exchange) { asked.set_value(std::move(exchange)); });
  auto client = std::make_unique<Client>(curl(), ClientLimits());
  client->send({.url = address_of(server.port())}, [](RequestResult) { ADD_FAILURE(); });
  const std::unique_ptr<Exchange> held = asked.get_future().get();
  client.reset();
  while (held->is_open()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The bytes of a body of `size` letters, given in pieces.
Upload letters(std::string_view method, int64_t size) {
  return {.method = method, .size_bytes = size, .read = [](int64_t begin, char* into, size_t most) {
            const size_t given = std::min<size_t>(most, 70'000);
            for (size_t index = 0; index < given; ++index)
              into[index] = static_cast<char>('a' + (begin + static_cast<int64_t>(index)) % 26);
            return given;
          }};
}

TEST(HttpClient, ReadsAnUploadWhileItIsSent) {
  Server server("127.0.0.1", 0, {.body_bytes = 4 << 20}, [](std::unique_ptr<Exchange> exchange) {
    bool is_right = true;
    for (size_t index = 0; index < exchange->body().size(); ++index)
      is_right = is_right && exchange->body()[index] == static_cast<char>('a' + index % 26);
    exchange->respond(
        200, {}, fmt::format("{} {} {}", exchange->method(), exchange->body().size(), is_right));
  });
  Client client(curl(), {});
  for (const auto& [method, size] :
       {std::pair<const char*, int64_t>{"PUT", 1'000'000}, {"POST", 300'000}, {"PUT", 1}}) {
    Request request{.url = address_of(server.port())};
    request.upload = letters(method, size);
    EXPECT_EQ(sent(client, std::move(request)).answer.body,
              fmt::format("{} {} true", method, size));
  }
}

TEST(HttpClient, AnErrorOfAnUploadEndsTheRequest) {
  Server server("127.0.0.1", 0, {},
                [](std::unique_ptr<Exchange> exchange) { exchange->respond(200, {}, ""); });
  Client client(curl(), {});
  Request request{.url = address_of(server.port())};
  request.upload = Upload{.size_bytes = 10, .read = [](int64_t, char*, size_t) -> size_t {
                            throw DataError("the file is shorter");
                          }};
  const RequestResult result = sent(client, std::move(request));
  ASSERT_TRUE(result.failure);
  EXPECT_THROW(std::rethrow_exception(result.failure), DataError);
}

}  // namespace
}  // namespace convoy::http
