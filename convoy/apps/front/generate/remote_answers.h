// SPDX-License-Identifier: Apache-2.0
//
// `convoy generate` and `convoy eval --generate` over servers of OpenAI's HTTP API: in the front,
// without a worker.
#pragma once

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/settings/remote_settings.h"
#include "convoy/core/settings/worker_calls.h"

namespace convoy::apps {

// The flags of `convoy generate` and `convoy eval` that choose where texts are computed. They are
// not passed to the worker.
struct AnswerPlace {
  settings::RemoteSettings remote = {};
  HostRanks ranks = {};
};

// With servers, throws ConfigError for a flag that servers cannot honour. Without servers, throws
// ConfigError for a flag about servers. The error names the flag.
void check_remote_flags(const AnswerPlace& place, const settings::AnswerCall& call);

// Return the exit code. Throw what remote::answer_remotely() throws.
int generate_remotely(const Context& context, const settings::RemoteSettings& remote,
                      const settings::GenerateCall& call);
int evaluate_remotely(const Context& context, const settings::RemoteSettings& remote,
                      const settings::EvalCall& call);

}  // namespace convoy::apps
