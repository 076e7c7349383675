// SPDX-License-Identifier: Apache-2.0
//
// The steps of a run to profile: "10:15" is step 10 to step 15, both included, numbered from 1. "5"
// is five steps after the first two of a process, which are not typical: memory is still being
// allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::settings {

struct StepRange {
  int64_t first = 0;  // 0: the third step of a process
  int64_t num_steps = 0;

  bool empty() const { return num_steps == 0; }
  // The last step of a range that has an explicit first step.
  int64_t last() const { return first + num_steps - 1; }
  bool operator==(const StepRange&) const = default;
};

// The error in `text`, as the end of a sentence; empty when it can be parsed.
std::optional<std::string> step_range_problem(std::string_view text);

// An empty text and "0" mean no steps. Throws ConfigError with step_range_problem().
StepRange parse_step_range(std::string_view text);

}  // namespace convoy::settings
