// SPDX-License-Identifier: Apache-2.0
//
// Ranks that generate side by side, each with an engine and requests of its own, until all have
// ended theirs. With a model whose weights are gathered for each pass they step together.
#pragma once

#include <cstdint>
#include <functional>

#include "convoy/generate/engine/engine.h"
#include "convoy/train/comm/group.h"

namespace convoy::recipes {

struct JointGeneration {
  generate::Engine& engine;  // its requests are submitted
  comm::Group& group;
  bool steps_together = false;  // the model's residency is collective
  std::function<bool()> stop_requested = {};
  double limit_seconds = 0;  // 0: no limit; at least one request of all ranks is ended
  int64_t ended = 0;         // requests of this rank that had ended before
};

// Late: the limit of seconds was reached.
enum class GenerationEnd { Complete, Stopped, Late };

// Collective. Blocks. Calls `take` with each completion of this rank's engine. Throws NumericError
// for logits that are not finite, naming the request by `name_of`.
GenerationEnd generate_jointly(const JointGeneration& generation,
                               const std::function<std::string(int64_t number)>& name_of,
                               const std::function<void(const generate::Completion&)>& take);

}  // namespace convoy::recipes
