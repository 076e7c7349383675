// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/prefix_states.h"

#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::scheduler {

PrefixStates::PrefixStates(int64_t num_places) : pool_(num_places), index_(num_places) {}

bool PrefixStates::has(const PrefixKey& key) const {
  const BlockId place = index_.find(key);
  return place != kNoBlock && pool_.num_holders(place) == 0;
}

int64_t PrefixStates::use(const PrefixKey& key) {
  CONVOY_INVARIANT(has(key), "a row begins with a state that is not kept");
  const BlockId place = index_.find(key);
  pool_.hold(place);
  pool_.release(place);  // the place that has been free for longest is taken first
  return place;
}

std::optional<int64_t> PrefixStates::plan(const PrefixKey& key) {
  if (index_.find(key) != kNoBlock || pool_.num_free() == 0) return std::nullopt;
  const BlockId place = pool_.take();
  index_.forget(place);
  index_.add(key, place);
  planned_.push_back(place);
  return place;
}

void PrefixStates::keep_planned() {
  for (const BlockId place : std::exchange(planned_, {})) pool_.release(place);
}

void PrefixStates::drop_planned() {
  for (const BlockId place : std::exchange(planned_, {})) {
    index_.forget(place);
    pool_.discard(place);
  }
}

}  // namespace convoy::scheduler
