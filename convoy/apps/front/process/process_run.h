// SPDX-License-Identifier: Apache-2.0
//
// One run of `convoy process` on this node: plans the rows, supervises workers, publishes the
// result.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "convoy/apps/front/process/process_config.h"

namespace convoy::apps {

// Prints the report and returns the exit code. Throws convoy::Error; StopRequest when a stop was
// requested, after all finished texts are saved.
int run_processing(Context& context, ProcessConfig& config);

// As run_processing(), but on one node and as a part of another command: returns the report and
// does not print it.
nlohmann::ordered_json process_as_part(Context& context, ProcessConfig& config);

}  // namespace convoy::apps
