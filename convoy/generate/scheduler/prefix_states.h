// SPDX-License-Identifier: Apache-2.0
//
// States of rows at ends of prefixes, for models whose layers keep a state of each row beside its
// blocks. The blocks of a prefix alone do not suffice there: a row begins after a prefix only if
// the state at its end is kept. This class decides which place keeps which state; the caller copies
// them. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/generate/scheduler/block_pool.h"
#include "convoy/generate/scheduler/prefix_index.h"

namespace convoy::scheduler {

class PrefixStates {
 public:
  explicit PrefixStates(int64_t num_places);

  int64_t num_places() const { return pool_.num_blocks(); }

  // True when the state at the end of this prefix is kept, and was computed in a finished step.
  bool has(const PrefixKey& key) const;
  // The place of this state, which was now used last. has(key) must be true.
  int64_t use(const PrefixKey& key);

  // The place for the state at the end of this prefix, which the planned step computes. The place
  // is taken from the state that was not used for the longest time. None when the state is kept or
  // planned already, or when the step keeps so many states that no place is left.
  std::optional<int64_t> plan(const PrefixKey& key);
  // Call one of the next two functions after each step. keep_planned(): its states are computed.
  // drop_planned(): they never will be.
  void keep_planned();
  void drop_planned();

 private:
  BlockPool pool_;  // its blocks are the places; rows hold none, they copy a state and begin
  PrefixIndex index_;
  std::vector<BlockId> planned_;  // held until the step is finished
};

}  // namespace convoy::scheduler
