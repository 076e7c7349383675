// SPDX-License-Identifier: Apache-2.0
//
// Servers of OpenAI's HTTP API as an engine of data processing: many requests at once. A request
// whose server has trouble is tried again, on the least busy of the healthy servers. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/http/curl_library.h"
#include "convoy/farm/process/text_engine.h"
#include "convoy/farm/remote/servers.h"

namespace convoy::remote {

struct HttpEngineOptions {
  int64_t requests = 512;                             // requests in flight, over all servers
  nlohmann::ordered_json template_kwargs = {};        // variables for the servers' chat template
  std::function<void(const std::string&)> warn = {};  // called in place of writing to the log
  // True if a server has answered another process of this run, or an earlier run. Called when only
  // refusals are left and this engine has no answer. Empty: no server has answered.
  std::function<bool()> was_answered = {};
  // Longest time without an answer from any server.
  std::chrono::seconds patience = std::chrono::minutes(10);
};

// A step waits some hundredths of a second for answers. It throws ConfigError if a server refuses
// something that every request holds, or if the account has no credit, and NetworkError if no
// server has answered for the time of `patience`. A text on which its servers fail several times
// ends as an Error that may pass. A text ends as a permanent Error if a server refuses it, or if
// its connection breaks each time while the server still answers other requests. `curl` must
// outlive the engine.
std::unique_ptr<process::TextEngine> make_http_text_engine(const http::CurlLibrary& curl,
                                                           Servers servers,
                                                           HttpEngineOptions options,
                                                           const Log& log);

}  // namespace convoy::remote
