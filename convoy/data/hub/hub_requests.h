// SPDX-License-Identifier: Apache-2.0
//
// Single requests to the hub and the hosts that it names, and their retries. The token is sent only
// to the hub's own host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/log.h"
#include "convoy/core/http/http_client.h"
#include "convoy/data/hub/hub_settings.h"

namespace convoy::hub {

// Returns true when the request must end. Called by several threads.
using StopTest = std::function<bool()>;

// The hub cannot answer now. It may say when to try again.
class HubBusy : public NetworkError {
 public:
  HubBusy(const std::string& message, double wait_seconds)
      : NetworkError(message, {.hint = "try again later"}), wait_seconds_(wait_seconds) {}
  double wait_seconds() const { return wait_seconds_; }  // 0: unknown

 private:
  double wait_seconds_;
};

// Whether a request to the hub's own host carries the token. Signed addresses are sent none, also
// where the store of the bytes is that host.
enum class Credentials { Token, None };

// A number of a header; -1 when the text is none.
int64_t whole_number(const std::string& text);

// The reason that an answer's header or JSON body gives, as " (text)"; empty when there is none.
std::string reason_of(const http::Answer& answer);

// One thread. `curl` and `settings` must outlive it.
class HubRequests {
 public:
  // `stall_seconds`: longest time without a byte.
  HubRequests(const http::CurlLibrary& curl, const HubSettings& settings, int64_t stall_seconds,
              StopTest stop, Log log);

  // Returns the answer, of any status. Throws ConfigError for no address, DataError for an answer
  // that is too long, NetworkError without an answer, StopRequest.
  http::Answer send(http::Request request, Credentials credentials = Credentials::Token);

  // Throws HubBusy for a status that may pass (408, 429, 5xx).
  static void require_not_busy(const http::Answer& answer, const std::string& url);

  // Calls `attempt` until it returns. After each NetworkError it waits longer than before, or not
  // at all if `progress` (bytes so far) has grown. Throws the last error.
  void with_retries(const std::function<void()>& attempt,
                    const std::function<int64_t()>& progress = {});

 private:
  void wait(double seconds) const;  // throws StopRequest

  http::Client http_;
  const HubSettings& settings_;
  StopTest stop_;
  Log log_;
};

}  // namespace convoy::hub
