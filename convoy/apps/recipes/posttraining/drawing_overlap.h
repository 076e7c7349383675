// SPDX-License-Identifier: Apache-2.0
//
// Asks programs and servers - rewards, a teacher - about the texts of a step while others of its
// texts are still drawn, each on a thread of its own: a slow one lengthens the step only by what is
// left when the last text ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace convoy::recipes {

class DrawingOverlap {
 public:
  using Place = std::pair<int64_t, int64_t>;  // problem, sample

  // One that is asked.
  struct Part {
    size_t number = 0;  // the caller's
    // True: it may compare the texts of a problem, so it gets them together.
    bool takes_groups = false;
  };
  // Asks the part with this number about the texts at these places. Called on the part's thread,
  // for one list after the other. Throws StopRequest once `stop_requested` is true.
  using Ask = std::function<void(size_t number, const std::vector<Place>& places,
                                 const std::function<bool()>& stop_requested)>;

  // `samples`: texts of each problem. What `ask` refers to outlives this.
  DrawingOverlap(const std::vector<Part>& parts, int64_t samples, Ask ask);
  // Ends what is under way, without its answers.
  ~DrawingOverlap();
  DrawingOverlap(const DrawingOverlap&) = delete;
  DrawingOverlap& operator=(const DrawingOverlap&) = delete;

  // The text at this place has ended. Does not block.
  void add(const Place& place);
  // Calls finish() if a part has failed. Does not block while none has.
  void throw_a_failure();
  // Blocks until every part was asked about all texts that were added. A part that fails ends the
  // others, by their `stop_requested`. Throws what the part that failed threw; of several the first
  // in their order. No text is added after it.
  void finish();

 private:
  class Asker;
  std::atomic<bool> one_has_failed_ = false;
  std::vector<std::unique_ptr<Asker>> askers_;
};

}  // namespace convoy::recipes
