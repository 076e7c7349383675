// SPDX-License-Identifier: Apache-2.0
//
// Measures a model by EleutherAI's lm-evaluation-harness, which asks a server of the model that
// runs meanwhile. https://github.com/EleutherAI/lm-evaluation-harness
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/harness/harness_flags.h"
#include "convoy/apps/front/harness/harness_folder.h"

namespace convoy::apps {

// The model that is measured, and how it computes.
struct MeasuredModel {
  Words server_words;        // flags of `convoy serve`, --model among them
  std::string adapter = {};  // LoRA adapter folder; empty: none
};

// Returns the Python of the harness. Throws ConfigError with `key` when it has no harness that can
// ask servers.
std::string find_harness(const settings::HarnessSettings& wanted, const std::string& key);

// Writes harness.log, server.log and the harness' own files into `folder`, and its messages to
// stderr unless the context is quiet. Blocks until the figures of read_harness_results() are there.
// Throws DataError when the harness fails, the server's own error, and StopRequest after a signal
// that ends commands or SIGUSR1; server and harness have then ended.
nlohmann::ordered_json measure_tasks(const Context& context,
                                     const settings::HarnessSettings& wanted,
                                     const std::string& python, const MeasuredModel& model,
                                     const HarnessFolder& folder);

// `convoy eval --tasks`: prints the figures, and writes FOLDER/tasks.json if an output folder is
// given.
int run_harness_command(const Context& context, const HarnessFlags& flags,
                        const Words& server_words);

}  // namespace convoy::apps
