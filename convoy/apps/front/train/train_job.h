// SPDX-License-Identifier: Apache-2.0
//
// One training on ranks, as `convoy train` and the rounds of `task: rejection` start it.
#pragma once

#include <string>

#include "convoy/apps/front/train/train_line.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::apps {

// Starts the ranks and waits for them. Returns the exit code. `to_go_on`: the command that resumes
// the work; empty = the command that resumes this training. Throws convoy::Error. Blocks.
int run_train_job(Context& context, const TrainInvocation& found, const std::string& to_go_on = {});

// Prints folder and figures of a finished run as JSON.
void print_result(const telemetry::RunFolder& folder);

}  // namespace convoy::apps
