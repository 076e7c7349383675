// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/joint_generation.h"

#include <chrono>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/train/comm/exchange.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

// The data that ranks exchange between steps of their engines.
struct Votes {
  int64_t unfinished = 0;
  int64_t ended = 0;
  int64_t stop = 0;
  int64_t late = 0;
  int64_t slow = 0;  // 1 if the last exchange was half a second ago
};

// Decides after which engine steps the ranks exchange their state: after each when they step
// together, else about every half second.
class Rounds {
 public:
  Rounds(comm::Group& group, bool step_together) : group_(group), together_(step_together) {}

  bool is_due(int64_t step) const { return step + 1 >= next_; }

  // Collective. Returns the sum of all votes. Only rank 0's `late` counts, so that one clock
  // decides.
  Votes ask(Votes own) {
    own.slow = Clock::now() - asked_ >= std::chrono::milliseconds(500) ? 1 : 0;
    if (group_.rank() != 0) own.late = 0;
    Votes all;
    for (const Votes& each : comm::exchange(group_, own)) {
      all.unfinished += each.unfinished;
      all.ended += each.ended;
      all.stop += each.stop;
      all.late += each.late;
      all.slow += each.slow;
    }
    if (!together_ && all.slow == 0) interval_ *= 2;
    next_ += interval_;
    asked_ = Clock::now();
    return all;
  }

 private:
  comm::Group& group_;
  const bool together_;
  int64_t interval_ = 1;
  int64_t next_ = 1;
  Clock::time_point asked_ = Clock::now();
};

}  // namespace

GenerationEnd generate_jointly(const JointGeneration& generation,
                               const std::function<std::string(int64_t number)>& name_of,
                               const std::function<void(const generate::Completion&)>& take) {
  const auto start = Clock::now();
  generate::Engine& engine = generation.engine;
  Rounds rounds(generation.group, generation.steps_together);
  int64_t num_ended = generation.ended;
  for (int64_t step = 0;; ++step) {
    for (const generate::Completion& ended : engine.step()) {
      if (ended.finish_reason == generate::FinishReason::NotFinite)
        throw NumericError(
            fmt::format("the model's logits are not finite ({}, token {})", name_of(ended.number),
                        ended.token_ids.size()),
            {.hint = "lower train.learning_rate, or go on from an earlier checkpoint"});
      ++num_ended;
      take(ended);
    }
    if (!rounds.is_due(step)) continue;
    const bool late =
        generation.limit_seconds > 0 && seconds_since(start) >= generation.limit_seconds;
    const bool stop = generation.stop_requested && generation.stop_requested();
    const Votes all = rounds.ask({.unfinished = engine.unfinished(),
                                  .ended = num_ended,
                                  .stop = stop ? 1 : 0,
                                  .late = late ? 1 : 0});
    if (all.stop > 0) return GenerationEnd::Stopped;
    if (all.unfinished == 0) return GenerationEnd::Complete;
    if (all.late > 0 && all.ended > 0) return GenerationEnd::Late;
  }
}

}  // namespace convoy::recipes
