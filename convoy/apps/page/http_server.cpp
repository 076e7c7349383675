// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::page {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 8;
// Far below the usual limit of 1024 descriptors per process.
constexpr size_t kMostClients = 256;
constexpr std::chrono::seconds kAnswerTime{60};
constexpr int kSilenceSeconds = 5;  // limit for a client that does not read its answer
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

enum class Head { Coming, Whole, Lost };

// The state of the request so far. Lost: the request is too large, or the client is gone.
Head read_on(int connection, std::string& text) {
  std::array<char, 4096> block{};
  const ssize_t count = ::recv(connection, block.data(), block.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return Head::Coming;
  if (count <= 0) return Head::Lost;
  text.append(block.data(), static_cast<size_t>(count));
  if (text.find(kHeadEnd) != std::string::npos) return Head::Whole;
  return text.size() < kMostRequestBytes ? Head::Coming : Head::Lost;
}

void send_all(int connection, std::string_view bytes) {
  const Clock::time_point deadline = Clock::now() + kAnswerTime;
  while (!bytes.empty() && Clock::now() < deadline) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the client is gone, or reads nothing
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

// Empty, with errno set, when it cannot be opened.
Descriptor listening_socket(const addrinfo& address) {
  Descriptor listener(::socket(
      address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!listener.open()) return {};
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(listener.get(), address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(listener.get(), 64) == 0)
    return listener;
  const int code = errno;
  listener.reset();
  errno = code;
  return {};
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
  const std::string_view method = first.substr(0, method_end);
  if (method != "GET" && method != "HEAD") return {.refusal = 405};
  const std::string_view target = first.substr(method_end + 1, target_end - method_end - 1);
  if (!target.starts_with('/')) return {.refusal = 400};
  ParsedRequest parsed;
  parsed.request.without_body = method == "HEAD";
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

HttpServer::HttpServer(const std::string& host, int port, Handler handler,
                       std::chrono::milliseconds head_time)
    : handler_(std::move(handler)), head_time_(head_time) {
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
  for (const addrinfo* one = found; one != nullptr && !listener_.open(); one = one->ai_next)
    listener_ = listening_socket(*one);
  if (!listener_.open())
    throw IoError(fmt::format("cannot listen on {}, port {}: {}", host, port, std::strerror(errno)),
                  {.hint = "another program may use the port: --port 0 takes one that is free"});
  port_ = port_of(listener_.get());
}

void HttpServer::run() {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([this] { answer_clients(); });
  take_heads();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void HttpServer::stop() { ::shutdown(listener_.get(), SHUT_RDWR); }

// One thread waits for all requests at once, so that a slow client does not delay others.
void HttpServer::take_heads() {
  std::vector<Client> clients;  // the oldest first
  while (true) {
    std::vector<pollfd> places = {{listener_.get(), POLLIN, 0}};
    for (const Client& client : clients) places.push_back({client.connection.get(), POLLIN, 0});
    int wait_ms = -1;
    if (!clients.empty()) {
      const auto left = clients.front().deadline - Clock::now();
      wait_ms = static_cast<int>(
          std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    }
    if (::poll(places.data(), places.size(), wait_ms) < 0) continue;
    const Clock::time_point now = Clock::now();
    std::vector<Client> kept;
    for (size_t at = 0; at < clients.size(); ++at) {
      Client& client = clients[at];
      const bool says_more = places[at + 1].revents != 0;
      const Head head = says_more ? read_on(client.connection.get(), client.head) : Head::Coming;
      if (head == Head::Whole)
        hand_over(std::move(client));
      else if (head == Head::Coming && now < client.deadline)
        kept.push_back(std::move(client));
    }
    clients = std::move(kept);
    if (places[0].revents != 0 && !accept_client(clients)) return;
  }
}

// False after stop().
bool HttpServer::accept_client(std::vector<Client>& clients) const {
  Descriptor connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.open()) {
    if (clients.size() == kMostClients) clients.erase(clients.begin());
    clients.push_back({.connection = std::move(connection), .deadline = Clock::now() + head_time_});
  } else if (errno == EINVAL || errno == EBADF) {
    return false;
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

void HttpServer::hand_over(Client client) {
  {
    const std::lock_guard lock(mutex_);
    if (asked_.size() == kMostClients) return;
    asked_.push_back(std::move(client));
  }
  changed_.notify_one();
}

void HttpServer::answer_clients() {
  while (true) {
    Client client;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !asked_.empty(); });
      if (ends_) return;
      client = std::move(asked_.front());
      asked_.pop_front();
    }
    answer(client);
  }
}

void HttpServer::answer(const Client& client) const {
  const timeval patience{kSilenceSeconds, 0};
  ::setsockopt(client.connection.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const ParsedRequest parsed = parse_request(client.head);
  HttpResponse response;
  if (parsed.refusal != 0) {
    response = {.status = parsed.refusal, .body = "this page is read with GET or HEAD\n"};
    if (parsed.refusal == 405) response.headers.emplace_back("Allow", "GET, HEAD");
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
  text += "\r\n";
  if (!parsed.request.without_body) text += response.body;
  send_all(client.connection.get(), text);
}

}  // namespace convoy::page
