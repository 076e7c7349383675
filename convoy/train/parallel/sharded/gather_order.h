// SPDX-License-Identifier: Apache-2.0
//
// Predicts the next units from the units before: after the same two units in a row the same third
// unit follows, in forward, in backward and from pass to pass. A pure function of the units so far,
// hence equal on every rank.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace convoy::parallel {

class GatherOrder {
 public:
  // Records the unit that is used now.
  void note(size_t unit);
  // The units that followed the last time these units were used: `count`, or fewer if no more are
  // known.
  std::vector<size_t> next(size_t count) const;

 private:
  using Two = std::pair<std::optional<size_t>, std::optional<size_t>>;
  Two last_two_;
  std::map<Two, size_t> follower_;
};

}  // namespace convoy::parallel
