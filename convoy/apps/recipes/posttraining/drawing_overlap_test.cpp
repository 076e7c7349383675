// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/drawing_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

#include "convoy/core/base/error.h"

namespace convoy::recipes {
namespace {

using Place = DrawingOverlap::Place;
using Places = std::vector<Place>;

// Every text a part was asked about, in lists as they came.
class Asked {
 public:
  void note(size_t number, const Places& places) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lists_[number].push_back(places);
  }
  std::vector<Places> lists(size_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lists_[number];
  }
  Places all(size_t number) {
    Places all;
    for (const Places& list : lists(number)) all.insert(all.end(), list.begin(), list.end());
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<size_t, std::vector<Places>> lists_;
};

TEST(DrawingOverlap, AsksWhileTextsAreStillDrawn) {
  Asked asked;
  std::promise<void> first;
  std::atomic<bool> is_told = false;
  DrawingOverlap overlap({{.number = 3}}, 2, [&](size_t number, const Places& places, const auto&) {
    asked.note(number, places);
    if (!is_told.exchange(true)) first.set_value();
  });
  overlap.add({7, 1});
  first.get_future().wait();  // the other texts have not ended
  EXPECT_EQ(asked.all(3), (Places{{7, 1}}));
  overlap.add({7, 0});
  overlap.add({9, 0});
  overlap.finish();
  EXPECT_EQ(asked.all(3), (Places{{7, 0}, {7, 1}, {9, 0}})) << "each once";
}

TEST(DrawingOverlap, ASlowRewardGetsTogetherWhatEndedMeanwhile) {
  Asked asked;
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future().share();
  DrawingOverlap overlap({{.number = 0}}, 4, [&](size_t number, const Places& places, const auto&) {
    asked.note(number, places);
    may_go.wait();
  });
  overlap.add({1, 0});
  while (asked.lists(0).empty()) std::this_thread::yield();
  for (const int64_t sample : {3, 1, 2}) overlap.add({1, sample});
  go.set_value();
  overlap.finish();
  EXPECT_EQ(asked.lists(0), (std::vector<Places>{{{1, 0}}, {{1, 3}, {1, 1}, {1, 2}}}));
}

TEST(DrawingOverlap, AProblemsTextsStayTogetherForARewardThatMayCompareThem) {
  Asked asked;
  DrawingOverlap overlap(
      {{.number = 0, .takes_groups = true}, {.number = 1}}, 2,
      [&](size_t number, const Places& places, const auto&) { asked.note(number, places); });
  overlap.add({1, 1});
  overlap.add({2, 0});
  while (asked.all(1).size() < 2) std::this_thread::yield();
  EXPECT_TRUE(asked.lists(0).empty()) << "no group is whole";
  overlap.add({2, 1});
  overlap.add({1, 0});
  overlap.finish();
  EXPECT_EQ(asked.all(0), (Places{{1, 0}, {1, 1}, {2, 0}, {2, 1}}));
  for (const Places& list : asked.lists(0)) {
    EXPECT_EQ(list.size() % 2, 0u);
    for (size_t at = 0; at + 1 < list.size(); at += 2) {
      EXPECT_EQ(list[at].first, list[at + 1].first);
      EXPECT_EQ(list[at].second, 0) << "in the order of samples";
    }
  }
}

TEST(DrawingOverlap, APartThatFailsEndsTheOthersAndTheDrawing) {
  DrawingOverlap overlap(
      {{.number = 0}, {.number = 1}, {.number = 2}}, 1,
      [&](size_t number, const Places&, const std::function<bool()>& stop_requested) {
        if (number == 1) throw DataError("of the second", {.hint = "none"});
        while (!stop_requested()) std::this_thread::yield();
        throw StopRequest("stopped");
      });
  overlap.throw_a_failure();
  overlap.add({1, 0});
  const auto draw = [&] {
    while (true) overlap.throw_a_failure();
  };
  EXPECT_THROW(draw(), DataError);
}

TEST(DrawingOverlap, OfPartsThatFailTheFirstInTheirOrderIsThrown) {
  std::promise<void> begun;
  std::promise<void> failed;
  DrawingOverlap overlap({{.number = 0}, {.number = 1}}, 1,
                         [&](size_t number, const Places&, const auto&) {
                           if (number == 1) {
                             begun.get_future().wait();
                             failed.set_value();
                             throw ConfigError("of the last", {.hint = "none"});
                           }
                           begun.set_value();
                           failed.get_future().wait();
                           throw DataError("of the first", {.hint = "none"});
                         });
  overlap.add({1, 0});
  EXPECT_THROW(overlap.finish(), DataError);
}

TEST(DrawingOverlap, IsLeftWithoutWaitingForNumbers) {
  std::atomic<bool> was_stopped = false;
  {
    std::promise<void> begun;
    DrawingOverlap overlap({{.number = 0}}, 1,
                           [&](size_t, const Places&, const std::function<bool()>& stop_requested) {
                             begun.set_value();
                             while (!stop_requested()) std::this_thread::yield();
                             was_stopped = true;
                             throw StopRequest("stopped");
                           });
    overlap.add({1, 0});
    begun.get_future().wait();
    overlap.add({2, 0});
  }
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace convoy::recipes
