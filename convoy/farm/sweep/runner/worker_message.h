// SPDX-License-Identifier: Apache-2.0
//
// The messages of a worker to its runner: one line each on the worker's stdout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/jobs/task.h"

namespace convoy::sweep {

// The way in which a cell failed, as its kind, exit code and signal: "exit 1 0". Equal for failures
// of the same way.
std::string way_of(const jobs::Failure& failure);

struct WorkerMessage {
  enum class Kind {
    Begin,       // the listed leases are computed from now until the next message
    Computed,    // work since the last message, not in the store yet; a sign of life
    Stored,      // the part of the computed work that was handed in
    Idle,        // nothing to do now; waits for other workers
    Note,        // for people, shown with -v
    Warning,     // for people, shown once
    Failure,     // a range or cell failed; for the log
    CellFailed,  // a cell will not be tried again; `text`: way_of() its failure
  };
  Kind kind = Kind::Idle;
  std::vector<int64_t> leases{};  // numbers of leases, for Begin
  int64_t guesses = 0;            // for Computed and Stored
  int64_t accepted = 0;           // for Computed and Stored
  int64_t cells = 0;         // for Computed: descents; for Stored: cells that have their result
  int64_t microseconds = 0;  // for Computed: this worker's time
  int64_t expected_microseconds = 0;  // Computed: predicted by the workload; 0 for descents
  std::string text{};                 // for Note, Warning, Failure and CellFailed

  std::string line() const;                                            // ends in '\n'
  static std::optional<WorkerMessage> parse(const std::string& line);  // nullopt: no message
};

}  // namespace convoy::sweep
