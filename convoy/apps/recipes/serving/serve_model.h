// SPDX-License-Identifier: Apache-2.0
//
// An engine process of `convoy serve`: a model and its adapters, for the requests of the front.
#pragma once

#include <atomic>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/worker_calls.h"

namespace convoy::recipes {

struct ServeRun : settings::ServeCall {
  settings::RankFlags ranks = {};
  int64_t engine_number = 0;  // among the engines of the server
};

// Answers the requests that arrive on `socket` until `stop_wanted`. Running answers then have
// --shutdown-time to end. Also returns when the front process has ended. Throws convoy::Error when
// it cannot start.
void serve_model(const ServeRun& run, int socket, const std::atomic<bool>& stop_wanted,
                 const Log& log);

}  // namespace convoy::recipes
