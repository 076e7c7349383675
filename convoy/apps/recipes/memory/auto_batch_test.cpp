// SPDX-License-Identifier: Apache-2.0
//
// Tests the numbers that a measured batch size is chosen by. tests/sharing/auto_batch_test.cpp
// tests the measurement.
#include "convoy/apps/recipes/memory/auto_batch.h"

#include <gtest/gtest.h>

namespace convoy::recipes {
namespace {

settings::TrainingSettings wished(const config::AutoOr<int64_t>& rows,
                                  const config::AutoOr<int64_t>& accumulation) {
  settings::TrainingSettings train;
  train.batch_size = rows;
  train.grad_accum = accumulation;
  return train;
}

const config::AutoOr<int64_t> kAuto;
const BatchItems kMany{.count = 1'000'000, .mean_tokens = 500};

TEST(AutoBatch, AccumulationComesNearestToItsTarget) {
  settings::TrainingSettings train = wished(kAuto, kAuto);
  settings::TrainingSettings settled;
  settle_batch(train, 4, kMany, settled);
  EXPECT_EQ(settled.batch_rows(), 4);
  EXPECT_EQ(settled.accumulation(), 8) << "16384 / 2000";
  settle_batch(train, 100, kMany, settled);
  EXPECT_EQ(settled.accumulation(), 1);
  train.target_tokens_per_device_step = 7000;
  settle_batch(train, 4, kMany, settled);
  EXPECT_EQ(settled.accumulation(), 4) << "3.5, rounded";
  train.global_batch_size = 64;
  settle_batch(train, 4, kMany, settled);
  EXPECT_EQ(settled.accumulation(), 0) << "the global batch decides it";
}

TEST(AutoBatch, ANumberStays) {
  settings::TrainingSettings settled = wished(kAuto, 3);
  settle_batch(wished(kAuto, 3), 5, kMany, settled);
  EXPECT_EQ(settled.accumulation(), 3);
}

TEST(AutoBatch, RowsAreBoundByDataAndStep) {
  const auto most = [](settings::TrainingSettings train, int64_t ranks, double tokens = 100) {
    train.steps = 10;  // steps limit the run, not epochs
    return most_batch_rows(train, {1000, tokens, ranks}).rows;
  };
  EXPECT_EQ(most(wished(kAuto, 1), 1), 1000);
  EXPECT_EQ(most(wished(kAuto, 1), 3), 334);
  EXPECT_EQ(most(wished(kAuto, kAuto), 1), 164) << "16384 tokens";
  EXPECT_EQ(most(wished(kAuto, kAuto), 1, 100000), 1);
  settings::TrainingSettings train = wished(kAuto, 0);
  train.global_batch_size = 50;
  EXPECT_EQ(most_batch_rows(train, {1000, 100, 4}).rows, 13);
  train = wished(8, 0);
  train.auto_find_batch_size = true;
  EXPECT_EQ(most_batch_rows(train, {180, 100, 1}).rows, 8) << "it goes down from there";
}

// With all 180 rows in a single step, three epochs would be only three steps.
TEST(AutoBatch, AnEpochKeepsItsSteps) {
  const RowLimit most = most_batch_rows(wished(kAuto, 1), {180, 50, 1});
  EXPECT_EQ(most.rows, 5);
  EXPECT_EQ(most.bound, "the epoch");
  EXPECT_GE(180 / most.rows, kLeastStepsPerEpoch);
  EXPECT_EQ(most_batch_rows(wished(kAuto, 1), {20, 50, 1}).rows, 1) << "no row is left out";
  EXPECT_EQ(most_batch_rows(wished(kAuto, 2), {180, 50, 1}).rows, 2);
  EXPECT_EQ(most_batch_rows(wished(kAuto, 1), {180, 50, 2}).rows, 2);
  EXPECT_EQ(most_batch_rows(wished(kAuto, 1), {100'000, 50, 1}).rows, 3125);
  EXPECT_EQ(most_batch_rows(wished(kAuto, kAuto), {100'000, 50, 1}).bound, "the rows");
}

TEST(AutoBatch, AccumulationLeavesAnEpochItsSteps) {
  settings::TrainingSettings settled;
  EXPECT_TRUE(settle_batch(wished(4, kAuto), 4, {350, 48, 1}, settled));
  EXPECT_EQ(settled.accumulation(), 2) << "of 85 that the target asks for";
  settings::TrainingSettings by_steps = wished(4, kAuto);
  by_steps.steps = 100;
  EXPECT_FALSE(settle_batch(by_steps, 4, {350, 48, 1}, settled));
  EXPECT_EQ(settled.accumulation(), 85) << "how long the run is, its settings say";
}

}  // namespace
}  // namespace convoy::recipes
