// SPDX-License-Identifier: Apache-2.0
//
// Asks rewards that are programs or servers about the texts of a step while others of its texts are
// still drawn, each on a thread of its own: a slow one lengthens the step only by what is left when
// the last text ends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace convoy::recipes {

class RewardOverlap {
 public:
  using Place = std::pair<int64_t, int64_t>;  // problem, sample

  struct Part {
    size_t reward = 0;
    // True: it may compare the texts of a problem, so it gets them together.
    bool takes_groups = false;
  };
  // Asks one reward about the texts at these places. Called on the thread of the reward, for one
  // list after the other. Throws StopRequest once `stop_requested` is true.
  using Ask = std::function<void(size_t reward, const std::vector<Place>& places,
                                 const std::function<bool()>& stop_requested)>;

  // `samples`: texts of each problem. What `ask` refers to outlives this.
  RewardOverlap(const std::vector<Part>& parts, int64_t samples, Ask ask);
  // Ends what is under way, without its numbers.
  ~RewardOverlap();
  RewardOverlap(const RewardOverlap&) = delete;
  RewardOverlap& operator=(const RewardOverlap&) = delete;

  // The text at this place has ended. Does not block.
  void add(const Place& place);
  // Blocks until every reward was asked about all texts that were added. Throws what the first
  // reward that failed threw, in the order of the parts. Call once, after all texts.
  void finish();

 private:
  class Asker;
  std::vector<std::unique_ptr<Asker>> askers_;
};

}  // namespace convoy::recipes
