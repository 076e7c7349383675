// SPDX-License-Identifier: Apache-2.0
//
// `convoy serve`: a model and its adapters behind OpenAI's HTTP API, by one generation engine.
#pragma once

#include <atomic>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/serve_flags.h"

namespace convoy::recipes {

struct ServeRun {
  settings::ServedModelFlags model = {};
  settings::ServeFlags flags = {};
  settings::EngineFlags engine = {};
  settings::RankFlags ranks = {};
};

// Serves until `stop_wanted`; then new requests get 503 and the running ones --shutdown-time.
// Prints "listening on ..." once requests are taken. Throws convoy::Error where it cannot begin.
void serve_model(const ServeRun& run, const std::atomic<bool>& stop_wanted, const Log& log);

}  // namespace convoy::recipes
