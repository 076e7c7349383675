// SPDX-License-Identifier: Apache-2.0
//
// Thrown by a workload for a cell that failed in a way worth more than a sentence.
#pragma once

#include <stdexcept>

#include "convoy/core/jobs/task.h"

namespace convoy::sweep {

enum class TryAgain { Yes, No };  // No: the cell would fail again in the same way

class TaskFailure : public std::runtime_error {
 public:
  explicit TaskFailure(jobs::Failure failure, TryAgain again = TryAgain::Yes)
      : std::runtime_error(failure.message), failure_(std::move(failure)), again_(again) {}
  const jobs::Failure& failure() const { return failure_; }
  TryAgain again() const { return again_; }

 private:
  jobs::Failure failure_;
  TryAgain again_;
};

}  // namespace convoy::sweep
