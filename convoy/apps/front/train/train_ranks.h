// SPDX-License-Identifier: Apache-2.0
//
// The command of a training's ranks, and the message after the ranks have ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/apps/front/train/train_start.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::apps {

// Files that the ranks of this node read and write.
struct TrainFiles {
  std::filesystem::path folder;  // the run folder
  std::filesystem::path config;
  std::vector<std::string> overrides = {};  // key=value; applied to the configuration from rank 0
};

std::vector<std::string> train_worker_command(const TrainStart& start, const TrainFiles& files);

// Prints that the training was stopped and the command `to_go_on` that resumes. Returns the exit
// code.
int conclude_stop(const Context& context, const std::string& to_go_on);

// Prints how the ranks ended and, after a stop, the command `to_go_on` that resumes; empty = none.
// Returns the exit code.
int conclude_training(const Context& context, const launch::LaunchReport& report,
                      const std::string& to_go_on);

}  // namespace convoy::apps
