// SPDX-License-Identifier: Apache-2.0
//
// Divides the rows of an evaluation among ranks, and lets the ranks agree to stop it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "convoy/train/comm/group.h"

namespace convoy::train {

// The turns of every rank for `num_rows`, `batch_size` to a batch: the same number on each, though
// some ranks may have no rows in the last turn.
int64_t num_turns(int64_t num_rows, int64_t batch_size, const comm::Group& group);

// The rows of this rank's batch: dealt round robin; fewer or none at the end.
std::vector<int64_t> rows_of_turn(int64_t turn, int64_t batch_size, int64_t num_rows,
                                  const comm::Group& group);

// Exchanges stop requests between all ranks now and then. The number of turns between two exchanges
// doubles until they take about half a second: ranks with long and short batches then seldom wait
// for each other.
class StopQuestion {
 public:
  // `stop_requested` outlives it; it may be empty: never.
  StopQuestion(comm::Group& group, const std::function<bool()>& stop_requested)
      : group_(group), stop_requested_(stop_requested) {}

  // Collective. Called by every rank after each of its turns. True on all ranks or on none.
  bool ask_after(int64_t turn);

 private:
  using Clock = std::chrono::steady_clock;

  comm::Group& group_;
  const std::function<bool()>& stop_requested_;
  int64_t interval_ = 1;  // turns
  int64_t next_ = 1;
  Clock::time_point asked_ = Clock::now();
};

}  // namespace convoy::train
