// SPDX-License-Identifier: Apache-2.0
//
// An exception of a workload for a failed cell, with more details than a message.
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
