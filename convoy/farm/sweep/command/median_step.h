// SPDX-License-Identifier: Apache-2.0
//
// The median rule for a running program: at a given step of its progress the program continues only
// if its value is no worse than the median of the values that other cells had at that step.
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

// Nothing is pruned unless at least this many other cells have a value.
constexpr size_t kLeastOthers = 5;

class MedianStep {
 public:
  // `others`: returns the values of other cells at the step; empty = there are none.
  MedianStep(const PruneRule& rule, std::string key, std::function<std::vector<double>()> others)
      : rule_(rule), key_(std::move(key)), others_(std::move(others)) {}

  // Takes a line of the program. The first JSON object that has the key, and a `step` at or after
  // the rule's step, decides. Returns false if the program must end.
  bool wants(const OutputLine& line);
  double value() const { return value_; }  // value at the step; NaN = not reached yet
  const std::optional<Pruned>& pruned() const { return pruned_; }

 private:
  PruneRule rule_;
  std::string key_;
  std::function<std::vector<double>()> others_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<Pruned> pruned_;
};

}  // namespace convoy::sweep
