// SPDX-License-Identifier: Apache-2.0
//
// A client's request to an engine, and the way its answer takes. The engines know one form of
// requests and answers, OpenAI's; a client of another form has a class of its own.
#pragma once

#include <memory>
#include <string_view>

#include "convoy/core/http/http_server.h"

namespace convoy::serving {

// As http::Exchange: one answer, one thread at a time.
class ClientExchange {
 public:
  virtual ~ClientExchange() = default;

  // For the engine; valid as long as this object.
  virtual std::string_view path() const = 0;
  virtual std::string_view body() const = 0;

  virtual void respond(int status, const http::Headers& headers, std::string_view body) = 0;
  virtual void start(int status, const http::Headers& headers) = 0;
  virtual bool send(std::string_view part) = 0;
  virtual bool is_open() const = 0;
};

// A client that speaks as the engines do.
class PlainClient : public ClientExchange {
 public:
  explicit PlainClient(std::unique_ptr<http::Exchange> exchange) : exchange_(std::move(exchange)) {}

  std::string_view path() const override { return exchange_->path(); }
  std::string_view body() const override { return exchange_->body(); }
  void respond(int status, const http::Headers& headers, std::string_view body) override {
    exchange_->respond(status, headers, body);
  }
  void start(int status, const http::Headers& headers) override {
    exchange_->start(status, headers);
  }
  bool send(std::string_view part) override { return exchange_->send(part); }
  bool is_open() const override { return exchange_->is_open(); }

 private:
  std::unique_ptr<http::Exchange> exchange_;
};

}  // namespace convoy::serving
