// SPDX-License-Identifier: Apache-2.0
//
// Measures a model by EleutherAI's lm-evaluation-harness, which asks a server of the model that
// runs meanwhile. https://github.com/EleutherAI/lm-evaluation-harness
#pragma once

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/harness/harness_flags.h"

namespace convoy::apps {

// `server_words`: flags of `convoy serve` that name the model and how it computes. Writes
// FOLDER/tasks.json, harness.log and server.log if an output folder is given, and prints the
// figures. Throws ConfigError when there is no harness, DataError when it fails.
int measure_tasks(const Context& context, const HarnessFlags& flags, const Words& server_words);

}  // namespace convoy::apps
