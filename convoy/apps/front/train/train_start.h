// SPDX-License-Identifier: Apache-2.0
//
// The facts that every stage of one training reads.
#pragma once

#include "convoy/apps/front/train/train_line.h"
#include "convoy/launch/supervisor/job_setup.h"

namespace convoy::apps {

// The input of a training's start. The three referenced objects must outlive it.
struct TrainStart {
  const Context& context;
  const TrainInvocation& found;
  const launch::JobSetup& setup;

  const TrainFlags& flags() const { return found.flags; }
};

}  // namespace convoy::apps
