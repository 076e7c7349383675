// SPDX-License-Identifier: Apache-2.0
//
// A run of task rejection: rounds in which the model solves problems, its right solutions are kept
// and learnt, and the result is evaluated on other problems. Each phase is the command that does it
// alone, with a folder and a resume of its own, so the same command continues after any end.
//
//   rounds.jsonl, rounds/N/{samples,rows,answers}.jsonl, rounds/N/{generate,train,evaluate}/,
//   adapter (or model): the best round's
#pragma once

#include "convoy/apps/front/train/train_line.h"
#include "convoy/core/config/resolve.h"
#include "convoy/launch/supervisor/job_setup.h"

namespace convoy::apps {

struct RejectionRequest {
  const TrainInvocation& found;
  const launch::JobSetup& setup;
  const settings::TrainSettings& train;
  const config::Resolved& resolved;
};

// With --dry-run prints the plan of each phase. Returns the exit code. Throws convoy::Error;
// StopRequest when a stop was requested, with the command that continues. Blocks.
int run_rejection(Context& context, const RejectionRequest& request);

}  // namespace convoy::apps
