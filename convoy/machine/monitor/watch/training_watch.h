// SPDX-License-Identifier: Apache-2.0
//
// Finds in events.jsonl when the training of a job begins and ends. A job loads its model before
// the training and writes files after it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "convoy/core/telemetry/logs/event_tail.h"

namespace convoy::monitor {

class TrainingWatch {
 public:
  // Reads events that are written from now on. The file may appear later.
  explicit TrainingWatch(const std::filesystem::path& events)
      : events_(events, telemetry::EventTail::From::Now) {}

  enum class News { None, Began, Ended };
  // The latest state in the new rows. A training that began and ended since the previous call
  // counts as ended, and its tokens are unknown: it was not watched.
  News look();

  int64_t step() const { return step_; }  // the last finished step
  // Tokens of the last training, once it has ended; 0 = it trained nothing, or has no tokens.
  int64_t tokens() const { return tokens_; }
  int64_t supervised_tokens() const { return supervised_tokens_; }

 private:
  telemetry::EventTail events_;
  int64_t step_ = 0;
  int64_t tokens_ = 0, supervised_tokens_ = 0;
};

}  // namespace convoy::monitor
