// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/range_tally.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/runner/counting_workload_test.h"

namespace convoy::sweep {
namespace {

PlannedCell counting_cell(int64_t guesses, StopRule stop = {}) {
  PlannedCell planned;
  planned.cell = {.method = "gnc", .seed = 5, .parameters = "{}"};
  planned.guesses = guesses;
  planned.stop = stop;
  return planned;
}

TEST(RangeTallies, EverySplitMergesToTheSameText) {
  const PlannedCell planned = counting_cell(300'000, {.accepted = 1'000'000});
  const auto experiment = CountingWorkload().guesses(planned.cell);
  const std::string whole = run_range(*experiment, planned, 0, 300'000).text();
  for (const int64_t step : {1'000, 65'536, 70'001, 299'999}) {
    std::string merged;
    for (int64_t first = 0; first < 300'000; first += step) {
      const int64_t count = std::min(step, 300'000 - first);
      const std::string part = run_range(*experiment, planned, first, count).text();
      merged = merged.empty() ? part : merge_range_payloads(merged, part);
    }
    EXPECT_EQ(merged, whole) << step;
  }
}

TEST(RangeTallies, AStopRuleLooksAtWholeCheckpointsFromTheFirstGuess) {
  const PlannedCell planned = counting_cell(1'000'000, {.accepted = 20'000});
  const auto experiment = CountingWorkload().guesses(planned.cell);
  const RangeTally range = run_range(*experiment, planned, 0, 1'000'000);
  const auto stopped = range.stopped(planned.stop);
  ASSERT_TRUE(stopped);
  EXPECT_GE(stopped->accepted, 20'000);
  EXPECT_EQ(stopped->guesses, checkpoint_begin(checkpoint_block(stopped->guesses)));
  // More guesses do not change the result, and fewer guesses than the checkpoint are not enough.
  EXPECT_EQ(run_range(*experiment, planned, 0, stopped->guesses).stopped(planned.stop), stopped);
  EXPECT_FALSE(run_range(*experiment, planned, 0, stopped->guesses - 1).stopped(planned.stop));
  EXPECT_FALSE(range.stopped({}));
}

TEST(RangeTallies, DamagedTextIsRefused) {
  EXPECT_THROW(RangeTally::parse("{"), DataError);
  EXPECT_THROW(RangeTally::parse(R"({"microseconds":1,"blocks":[{}]})"), DataError);
}

TEST(RangeTally, NamesTheGpusThatTookPart) {
  RangeTally left, right;
  left.add_gpu("cuda:1");
  left.add_gpu("cuda:0");
  right.add_gpu("cuda:1");
  right.add_gpu("cuda:2");
  const RangeTally both = RangeTally::parse(merge_range_payloads(left.text(), right.text()));
  EXPECT_EQ(both.gpus(), (std::vector<std::string>{"cuda:0", "cuda:1", "cuda:2"}));
  EXPECT_TRUE(RangeTally::parse(RangeTally().text()).gpus().empty());
}

}  // namespace
}  // namespace convoy::sweep
