// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/http_server.h"

#include <convoy_http.h>

#include <csignal>

#include "convoy/core/base/error.h"

namespace convoy::http {
namespace {

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string_view view(ConvoyHttpBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

}  // namespace

struct Server::Calls {
  static void handle(void* server, ConvoyHttpExchange* exchange) {
    auto owned = std::make_unique<Exchange>(exchange);
    static_cast<Server*>(server)->handler_(std::move(owned));
  }

  static void write_error(void* server, uint16_t status, const uint8_t* why, size_t why_size,
                          ConvoyHttpError* error) {
    const ErrorAnswer answer =
        static_cast<Server*>(server)->error_writer_(status, view({why, why_size}));
    convoy_http_put_error(error, bytes_of(answer.content_type), answer.content_type.size(),
                          bytes_of(answer.body), answer.body.size());
  }
};

ErrorAnswer plain_error(int /*status*/, std::string_view why) {
  return {.content_type = "text/plain; charset=utf-8", .body = std::string(why) + "\n"};
}

Exchange::~Exchange() { convoy_http_end(exchange_); }

std::string_view Exchange::method() const { return view(convoy_http_method(exchange_)); }
std::string_view Exchange::target() const { return view(convoy_http_target(exchange_)); }
std::string_view Exchange::path() const { return target().substr(0, target().find('?')); }
std::string_view Exchange::body() const { return view(convoy_http_body(exchange_)); }
std::string_view Exchange::header(std::string_view name) const {
  return view(convoy_http_header(exchange_, bytes_of(name), name.size()));
}

void Exchange::start(int status, const Headers& headers) {
  std::string lines;
  for (const auto& [name, value] : headers) lines += name + ":" + value + "\n";
  convoy_http_begin(exchange_, static_cast<uint16_t>(status), bytes_of(lines), lines.size());
}

bool Exchange::send(std::string_view part) {
  return convoy_http_send(exchange_, bytes_of(part), part.size()) != 0;
}

void Exchange::respond(int status, const Headers& headers, std::string_view body) {
  Headers whole = headers;
  whole.emplace_back("content-length", std::to_string(body.size()));
  start(status, whole);
  send(body);
}

bool Exchange::is_open() const { return convoy_http_is_open(exchange_) != 0; }

Server::Server(const std::string& host, int port, const ServerLimits& limits, Handler handler,
               ErrorWriter error_writer)
    : handler_(std::move(handler)), error_writer_(std::move(error_writer)) {
  std::signal(SIGPIPE, SIG_IGN);  // hyper writes to sockets whose clients may have left
  ConvoyText error{};
  const ConvoyHttpLimits allowed{
      .body_bytes = static_cast<size_t>(limits.body_bytes),
      .pending_bytes = static_cast<size_t>(limits.pending_bytes),
      .clients = static_cast<size_t>(limits.clients),
      .request_ms = static_cast<uint64_t>(limits.request_time.count()),
      .silence_ms = static_cast<uint64_t>(limits.silence_time.count()),
  };
  const int status =
      convoy_http_start(bytes_of(host), host.size(), static_cast<uint16_t>(port), allowed,
                        &Calls::handle, &Calls::write_error, this, &server_, &error);
  if (status == 0) return;
  const std::string why(reinterpret_cast<const char*>(error.data), error.size);
  convoy_text_free(error);
  throw IoError(fmt::format("cannot listen on {} port {}: {}", host, port, why),
                {.hint = "choose another --host or --port; port 0 takes any free one"});
}

Server::~Server() { convoy_http_stop(server_, static_cast<uint64_t>(stop_time.count())); }

int Server::port() const { return convoy_http_port(server_); }

}  // namespace convoy::http
