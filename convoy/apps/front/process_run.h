// SPDX-License-Identifier: Apache-2.0
//
// One run of `convoy process` on this node: plans the rows, keeps workers at them, publishes.
#pragma once

#include "convoy/apps/front/process_config.h"

namespace convoy::apps {

// Prints the report and returns the exit code. Throws convoy::Error; StopRequest where it was asked
// to stop, with all finished texts kept.
int run_processing(Context& context, ProcessConfig& config);

}  // namespace convoy::apps
