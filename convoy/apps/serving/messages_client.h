// SPDX-License-Identifier: Apache-2.0
//
// A client that speaks Anthropic's Messages API.
#pragma once

#include <memory>
#include <string_view>

#include "convoy/apps/serving/client_exchange.h"
#include "convoy/apps/serving/messages_api.h"
#include "convoy/apps/serving/messages_stream.h"

namespace convoy::serving {

class MessagesClient : public ClientExchange {
 public:
  // `request`: engine_request() of the exchange.
  MessagesClient(std::unique_ptr<http::Exchange> exchange, EngineRequest request)
      : exchange_(std::move(exchange)),
        request_(std::move(request)),
        stream_(request_.form_field) {}

  std::string_view path() const override { return request_.path; }
  std::string_view body() const override { return request_.body; }
  void respond(int status, const http::Headers& headers, std::string_view body) override;
  void start(int status, const http::Headers& headers) override;
  bool send(std::string_view part) override;
  bool is_open() const override { return exchange_->is_open(); }

 private:
  std::unique_ptr<http::Exchange> exchange_;
  EngineRequest request_;
  MessagesStream stream_;
};

}  // namespace convoy::serving
