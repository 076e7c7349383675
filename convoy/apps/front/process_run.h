// SPDX-License-Identifier: Apache-2.0
//
// One run of `convoy process` on this node: plans the rows, supervises workers, publishes the
// result.
#pragma once

#include "convoy/apps/front/process_config.h"

namespace convoy::apps {

// Prints the report and returns the exit code. Throws convoy::Error; StopRequest when a stop was
// requested, after all finished texts are saved.
int run_processing(Context& context, ProcessConfig& config);

}  // namespace convoy::apps
