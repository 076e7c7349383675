// SPDX-License-Identifier: Apache-2.0
//
// What a worker tells the runner that started it: one line each on its stdout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convoy::sweep {

struct WorkerMessage {
  enum class Kind {
    Begin,     // the leases named are being computed from now on, until the next message
    Progress,  // what was finished since the last one; also a sign of life
    Idle,      // nothing to do now: the store waits for others
    Note,      // for people, under -v
  };
  Kind kind = Kind::Idle;
  std::vector<int64_t> leases{};  // Begin: numbers
  int64_t guesses = 0;            // Progress
  int64_t accepted = 0;
  int64_t cells = 0;   // that have their result
  std::string text{};  // Note

  std::string line() const;                                            // ends in '\n'
  static std::optional<WorkerMessage> parse(const std::string& line);  // none: it is no message
};

}  // namespace convoy::sweep
