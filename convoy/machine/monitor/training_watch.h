// SPDX-License-Identifier: Apache-2.0
//
// When the training of a job begins and ends, as its events.jsonl says it: before that a job loads
// its model, behind it it writes files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "convoy/core/telemetry/event_tail.h"

namespace convoy::monitor {

class TrainingWatch {
 public:
  // Of events that are written from now on. The file may come later.
  explicit TrainingWatch(const std::filesystem::path& events)
      : events_(events, telemetry::EventTail::From::Now) {}

  enum class News { None, Began, Ended };
  // What the new rows say last. A training that began and ended since the call before has ended,
  // and its tokens are unknown: nobody watched it.
  News look();

  int64_t step() const { return step_; }  // the last that was done
  // Of the last start, when it has ended; 0 = it did nothing, or has no tokens.
  int64_t tokens() const { return tokens_; }
  int64_t supervised_tokens() const { return supervised_tokens_; }

 private:
  telemetry::EventTail events_;
  int64_t step_ = 0;
  int64_t tokens_ = 0, supervised_tokens_ = 0;
};

}  // namespace convoy::monitor
