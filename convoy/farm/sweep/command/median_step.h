// SPDX-License-Identifier: Apache-2.0
//
// The median rule, while a program runs: at a step of its progress it goes on only if its value is
// no worse than the median of what other cells had there.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "convoy/farm/sweep/command/program_run.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

struct PruneRule {
  int64_t step = 0;
  bool greatest_is_best = false;
};

// Without so many others nothing is pruned.
constexpr size_t kLeastOthers = 5;

class MedianStep {
 public:
  // `others`: the values of other cells at the step; empty = there are none.
  MedianStep(const PruneRule& rule, std::string key, std::function<std::vector<double>()> others)
      : rule_(rule), key_(std::move(key)), others_(std::move(others)) {}

  // A line of the program. The first JSON object with the key and with `step` at or after the
  // rule's decides; false = the program is to end.
  bool wants(const OutputLine& line);
  double value() const { return value_; }  // at the step; NaN = not there yet
  const std::optional<Pruned>& pruned() const { return pruned_; }

 private:
  PruneRule rule_;
  std::string key_;
  std::function<std::vector<double>()> others_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<Pruned> pruned_;
};

}  // namespace convoy::sweep
