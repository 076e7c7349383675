// SPDX-License-Identifier: Apache-2.0
//
// Servers of OpenAI's HTTP API as an engine of data processing: many requests at once, each tried
// again after trouble of its server, on the least busy one that is well. One thread.
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
  int64_t requests = 512;                             // at once, to all servers
  nlohmann::ordered_json template_kwargs = {};        // variables for the servers' chat template
  std::function<void(const std::string&)> warn = {};  // in place of the log's lines
  std::chrono::seconds patience = std::chrono::minutes(10);  // with servers of which none answers
};

// A step waits some hundredths of a second for answers. It throws ConfigError when a server refuses
// what every request holds, and NetworkError once no server has answered for the time of patience.
// A text on which its servers fail several times ends as an Error that may pass; one that a server
// refuses, or whose connection breaks each time while the server answers a look at it, as an Error
// for good. `curl` must outlive it.
std::unique_ptr<process::TextEngine> make_http_text_engine(const http::CurlLibrary& curl,
                                                           Servers servers,
                                                           HttpEngineOptions options,
                                                           const Log& log);

}  // namespace convoy::remote
