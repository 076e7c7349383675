// SPDX-License-Identifier: Apache-2.0
//
// Thrown by a workload for a cell that failed in a way worth more than a sentence.
#pragma once

#include <stdexcept>

#include "convoy/core/jobs/task.h"

namespace convoy::sweep {

class TaskFailure : public std::runtime_error {
 public:
  explicit TaskFailure(jobs::Failure failure)
      : std::runtime_error(failure.message), failure_(std::move(failure)) {}
  const jobs::Failure& failure() const { return failure_; }

 private:
  jobs::Failure failure_;
};

}  // namespace convoy::sweep
