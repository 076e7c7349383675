// SPDX-License-Identifier: Apache-2.0
//
// Servers of OpenAI's HTTP API: their addresses, the key that they are given, and a first look at
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
  std::string key = {};  // never in texts for people or files; empty: none is sent
  int64_t timeout_s = 600;

  // Headers of a request.
  std::vector<std::string> headers() const;
  // A server's words, on one line, without the key and cut to some hundred characters.
  std::string quoted(std::string_view text) const;
  http::ClientLimits limits() const;
};

// `model`: the name where the settings have none. The key is CONVOY_ENGINE_KEY, else
// OPENAI_API_KEY. Throws ConfigError: an address with a key in it, no model.
Servers read_servers(const settings::RemoteSettings& settings, const std::string& model);

// Asks each server for its models. Warns of servers that do not answer. Throws ConfigError if one
// refuses the key or has no such model, NetworkError if none answers. Blocks.
void look_at_servers(const Servers& servers, http::Client& client, const Log& log);

// The message in the body of an answer that is an error.
std::string error_message(const Servers& servers, const http::Answer& answer);

// The error for an answer that every request would get: 401, 403, 404, a redirect, another status
// below 500.
[[noreturn]] void refuse_answer(const Servers& servers, const std::string& address,
                                const http::Answer& answer);

}  // namespace convoy::remote
