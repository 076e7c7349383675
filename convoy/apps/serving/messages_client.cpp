// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/messages_client.h"

namespace convoy::serving {

void MessagesClient::respond(int status, const http::Headers& headers, std::string_view body) {
  const Json answer = Json::parse(body);
  const Json message = status != 200 ? message_error(status, answer, request_.form_field)
                       : exchange_->path() == kCountTokensPath ? token_count(answer)
                                                               : whole_message(answer);
  exchange_->respond(status, headers, dumped(message) + "\n");
}

void MessagesClient::start(int status, const http::Headers& headers) {
  exchange_->start(status, headers);
}

bool MessagesClient::send(std::string_view part) {
  const std::string events = stream_.take(part);
  return events.empty() ? exchange_->is_open() : exchange_->send(events);
}

}  // namespace convoy::serving
