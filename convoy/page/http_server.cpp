// SPDX-License-Identifier: Apache-2.0
#include "convoy/page/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/base/trimmed.h"

namespace convoy::page {
namespace {

// A client that says nothing holds one of them for kPatienceSeconds.
constexpr int kThreads = 8;
constexpr int kPatienceSeconds = 5;
constexpr size_t kMostRequestBytes = 16 << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  const char low = static_cast<char>(letter | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::string decoded(std::string_view text, bool plus_is_blank) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool coded = text[at] == '%' && at + 2 < text.size() && hex_digit(text[at + 1]) >= 0 &&
                       hex_digit(text[at + 2]) >= 0;
    if (coded) {
      plain += static_cast<char>(hex_digit(text[at + 1]) * 16 + hex_digit(text[at + 2]));
      at += 2;
    } else {
      plain += plus_is_blank && text[at] == '+' ? ' ' : text[at];
    }
  }
  return plain;
}

std::string low(std::string_view text) {
  std::string small;
  for (const char letter : text)
    small += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  return small;
}

void add_query(HttpRequest& request, std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = equals < pair.size() ? pair.substr(equals + 1) : "";
    if (!pair.empty())
      request.query.emplace(decoded(pair.substr(0, equals), true), decoded(value, true));
  }
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Internal Server Error";
  }
}

// Up to the end of the head; empty when the client is too slow, says too much, or goes.
std::string read_head(int connection) {
  std::string text;
  std::array<char, 4096> block{};
  while (text.size() < kMostRequestBytes) {
    const ssize_t count = ::recv(connection, block.data(), block.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    text.append(block.data(), static_cast<size_t>(count));
    if (text.find(kHeadEnd) != std::string::npos) return text;
  }
  return {};
}

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the client is gone
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

int listening_socket(const addrinfo& address) {
  const int listener =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (listener < 0) return -1;
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(listener, address.ai_addr, address.ai_addrlen) == 0 && ::listen(listener, 64) == 0)
    return listener;
  const int code = errno;
  ::close(listener);
  errno = code;
  return -1;
}

int port_of(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

std::string HttpRequest::parameter(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

std::string HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

ParsedRequest parse_request(const std::string& text) {
  std::string_view rest(text);
  const size_t end = rest.find(kHeadEnd);
  if (end == std::string_view::npos) return {.refusal = 400};
  rest = rest.substr(0, end);
  const auto next_line = [&rest] {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.size(), line.size() + 2));
    return line;
  };
  const std::string_view first = next_line();
  const size_t method_end = first.find(' ');
  const size_t target_end = first.rfind(' ');
  if (method_end == std::string_view::npos || target_end == method_end ||
      !first.substr(target_end + 1).starts_with("HTTP/1."))
    return {.refusal = 400};
  if (first.substr(0, method_end) != "GET") return {.refusal = 405};
  const std::string_view target = first.substr(method_end + 1, target_end - method_end - 1);
  if (!target.starts_with('/')) return {.refusal = 400};
  ParsedRequest parsed;
  const size_t question = std::min(target.find('?'), target.size());
  parsed.request.path = decoded(target.substr(0, question), false);
  if (question < target.size()) add_query(parsed.request, target.substr(question + 1));
  while (!rest.empty()) {
    const std::string_view line = next_line();
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return {.refusal = 400};
    parsed.request.headers[low(line.substr(0, colon))] =
        std::string(trimmed(line.substr(colon + 1), " \t"));
  }
  return parsed;
}

HttpServer::HttpServer(const std::string& host, int port, Handler handler)
    : handler_(std::move(handler)) {
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  wish.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int fault = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wish, &found);
  if (fault != 0)
    throw IoError(
        fmt::format("`{}` is no address of this machine: {}", host, ::gai_strerror(fault)),
        {.key = "--host", .hint = "127.0.0.1 serves this machine alone"});
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr && listener_ < 0; one = one->ai_next)
    listener_ = listening_socket(*one);
  if (listener_ < 0)
    throw IoError(fmt::format("cannot listen on {}, port {}: {}", host, port, std::strerror(errno)),
                  {.hint = "another program may use the port: --port 0 takes one that is free"});
  port_ = port_of(listener_);
}

HttpServer::~HttpServer() { ::close(listener_); }

void HttpServer::run() {
  std::vector<std::thread> threads;
  for (int thread = 1; thread < kThreads; ++thread)
    threads.emplace_back([this] { serve_connections(); });
  serve_connections();
  for (std::thread& thread : threads) thread.join();
}

void HttpServer::stop() { ::shutdown(listener_, SHUT_RDWR); }

void HttpServer::serve_connections() {
  while (true) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      answer(connection);
      ::close(connection);
    } else if (errno == EINVAL || errno == EBADF) {
      return;  // stop() was called
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

void HttpServer::answer(int connection) const {
  const timeval patience{kPatienceSeconds, 0};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const std::string head = read_head(connection);
  if (head.empty()) return;
  const ParsedRequest parsed = parse_request(head);
  HttpResponse response;
  if (parsed.refusal != 0) {
    response = {.status = parsed.refusal, .body = "this page is read with GET\n"};
  } else {
    try {
      response = handler_(parsed.request);
    } catch (const std::exception& error) {
      response = {.status = 500, .body = std::string(error.what()) + "\n"};
    }
  }
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n",
      response.status, reason_of(response.status), response.type, response.body.size());
  for (const auto& [name, value] : response.headers) text += fmt::format("{}: {}\r\n", name, value);
  send_all(connection, text + "\r\n" + response.body);
}

}  // namespace convoy::page
