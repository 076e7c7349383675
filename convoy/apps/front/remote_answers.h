// SPDX-License-Identifier: Apache-2.0
//
// `convoy generate` and `convoy eval --generate` over servers of OpenAI's HTTP API: in the front,
// without a worker.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/worker_ranks.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/metric_settings.h"
#include "convoy/core/settings/remote_settings.h"

namespace convoy::apps {

// Flags of both commands.
struct RemoteFlags {
  settings::RemoteSettings remote = {};
  settings::SamplingFlags sampling = {};
  settings::EngineFlags engine = {};
  settings::ModelFlags model = {};
  HostRanks ranks = {};
};

// Throws ConfigError, naming the flag, for one that servers cannot honour; without servers, for one
// that is about them.
void check_remote_flags(const RemoteFlags& flags);

// Return the exit code. Throw what remote::answer_remotely() throws.
int generate_remotely(const Context& context, const settings::GenerateFlags& flags,
                      const RemoteFlags& common);
int evaluate_remotely(const Context& context, const settings::EvalFlags& flags,
                      const settings::MetricFlags& metrics, const RemoteFlags& common);

}  // namespace convoy::apps
