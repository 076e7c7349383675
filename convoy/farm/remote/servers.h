// SPDX-License-Identifier: Apache-2.0
//
// Servers of OpenAI's HTTP API: their addresses, the key that is sent to them, and a first check of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/http/http_client.h"
#include "convoy/core/settings/remote_settings.h"

namespace convoy::remote {

struct Servers {
  std::vector<std::string> addresses = {};  // "http://host:port/v1", without a slash at the end
  std::string model;
  std::string key = {};  // never written in texts for people or files; empty: no key is sent
  int64_t timeout_s = 600;

  // The headers of every request.
  std::vector<std::string> headers() const;
  // The server's words on one line, without the key and cut to some hundred characters.
  std::string quoted(std::string_view text) const;
  http::ClientLimits limits() const;
};

// `model`: the model's name if the settings have none. The key is the value of CONVOY_ENGINE_KEY,
// else of OPENAI_API_KEY. Throws ConfigError for an address with a key in it, and if no model is
// named.
Servers read_servers(const settings::RemoteSettings& settings, const std::string& model);

// Asks each server for its models. Warns about servers that do not answer. Throws ConfigError if a
// server refuses the key or does not have the model, NetworkError if no server answers. Blocks.
void look_at_servers(const Servers& servers, http::Client& client, const Log& log);

// The message in the body of an error answer.
std::string error_message(const Servers& servers, const http::Answer& answer);

// Throws the error for an answer that every request would get: one about the account's credit, 401,
// 403, 404 and other statuses of the address, a redirect, another status below 500.
[[noreturn]] void refuse_answer(const Servers& servers, const std::string& address,
                                const http::Answer& answer);

}  // namespace convoy::remote
