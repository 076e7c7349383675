// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/memory/batch_probe.h"

#include <gtest/gtest.h>

#include <chrono>

#include "convoy/train/loop/toy_run_test.h"

namespace convoy::recipes {
namespace {

// Has steps of two micro-batches. Counts the passes, and requests a stop during one of them.
class ProbedToy {
 public:
  explicit ProbedToy(int stop_at) {
    model_.before_forward = [this, stop_at] {
      ++passes;
      if (passes == stop_at) stop_ = true;
    };
  }

  std::optional<BatchProbe::Measured> measure() {
    BatchProbe probe({.model = model_,
                      .strategy = *strategy_,
                      .optimizer = optimizer_,
                      .accumulates = true,
                      .stop_requested = stop_});
    const BatchProbe::Rows rows = {train::row({1, 2, 3, 4}), train::row({5, 6})};
    return probe.measure({rows, rows});
  }

  int passes = 0;

 private:
  train::ToyModel model_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<comm::Group> group_ =
      comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  std::unique_ptr<parallel::Strategy> strategy_ = parallel::make_strategy({}, *group_);
  optim::AdamW optimizer_{optim::AdamWConfig{},
                          parallel::prepare_parameters(*strategy_, model_, model_.parameters())};
};

TEST(BatchProbe, MeasuresMemoryAndSpeedOfSteps) {
  ProbedToy toy(/*stop_at=*/0);
  const auto measured = toy.measure();
  ASSERT_TRUE(measured.has_value());
  EXPECT_EQ(toy.passes, 6) << "the very first step is not measured";
  EXPECT_EQ(measured->peaks.size(), 1U);
  EXPECT_GT(measured->tokens_per_second, 0);
}

TEST(BatchProbe, LooksAtAStopBeforeEachMicroBatch) {
  for (const int pass : {1, 2, 3, 4, 5}) {
    ProbedToy toy(/*stop_at=*/pass);
    EXPECT_FALSE(toy.measure().has_value());
    EXPECT_EQ(toy.passes, pass);
  }
}

}  // namespace
}  // namespace convoy::recipes
