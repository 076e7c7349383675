// SPDX-License-Identifier: Apache-2.0
//
// The record of a finished range of guesses in the store: tallies, split at the checkpoints of the
// cell's stop rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

class RangeTally {
 public:
  // Adds a tally of the next guesses. `block` must not be smaller than in the call before. Without
  // a stop rule all guesses belong to block 0.
  void add(int64_t block, const Tally& tally);
  // Adds `right`, which holds the guesses that follow. Associative, bit for bit.
  void append(const RangeTally& right);
  void add_time(int64_t microseconds) { microseconds_ += microseconds; }
  void add_gpu(const std::string& name);  // notes a GPU that computed a part

  Tally total() const;
  int64_t microseconds() const { return microseconds_; }
  const std::vector<std::string>& gpus() const { return gpus_; }  // sorted names
  std::string text() const;
  static RangeTally parse(const std::string& text);  // throws DataError

  // For a range that begins with guess 0: the tally up to the first complete checkpoint that
  // satisfies the rule.
  std::optional<Tally> stopped(const StopRule& rule) const;

 private:
  struct Block {
    int64_t number = 0;
    Tally tally;
  };
  std::vector<Block> blocks_;
  int64_t microseconds_ = 0;
  std::vector<std::string> gpus_;
};

// Merges payloads for JobStore.
std::string merge_range_payloads(const std::string& left, const std::string& right);

// Computes guesses [first, first + count) of `planned`, split at the checkpoints of its stop rule.
RangeTally run_range(const GuessExperiment& experiment, const PlannedCell& planned, int64_t first,
                     int64_t count);

}  // namespace convoy::sweep
