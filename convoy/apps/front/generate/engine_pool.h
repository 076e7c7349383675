// SPDX-License-Identifier: Apache-2.0
//
// The engine processes of a server, `convoy-worker serve`: their number, devices and start.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/machine/processes/process_pool.h"

namespace convoy::apps {

struct EngineWishes {
  std::string devices = "auto";
  int64_t engines = 0;  // 0: one for each GPU, on CPUs one for each NUMA node
  int64_t threads = 0;  // CPU threads of each engine; 0: not given
};

// `words`: flags of each engine. The caller sets the signal mask of the result. Throws ConfigError,
// DeviceError.
processes::PoolOptions engine_pool(const Context& context, const EngineWishes& wishes, Words words);

}  // namespace convoy::apps
