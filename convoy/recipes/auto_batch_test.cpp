// SPDX-License-Identifier: Apache-2.0
//
// The numbers around a measured batch. Measuring itself: tests/sharing/auto_batch_test.cpp.
#include "convoy/recipes/auto_batch.h"

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

TEST(AutoBatch, AccumulationComesNearestToItsTarget) {
  settings::TrainingSettings train = wished(kAuto, kAuto);
  settings::TrainingSettings settled;
  settle_batch(train, 4, 500, settled);
  EXPECT_EQ(settled.batch_rows(), 4);
  EXPECT_EQ(settled.accumulation(), 8) << "16384 / 2000";
  settle_batch(train, 100, 500, settled);
  EXPECT_EQ(settled.accumulation(), 1);
  train.target_tokens_per_device_step = 7000;
  settle_batch(train, 4, 500, settled);
  EXPECT_EQ(settled.accumulation(), 4) << "3.5, rounded";
  train.global_batch_size = 64;
  settle_batch(train, 4, 500, settled);
  EXPECT_EQ(settled.accumulation(), 0) << "the global batch decides it";
}

TEST(AutoBatch, ANumberStays) {
  settings::TrainingSettings settled = wished(kAuto, 3);
  settle_batch(wished(kAuto, 3), 5, 100, settled);
  EXPECT_EQ(settled.accumulation(), 3);
}

TEST(AutoBatch, RowsAreBoundByDataAndStep) {
  EXPECT_EQ(most_batch_rows(wished(kAuto, 1), 1000, 100, 1), 1000);
  EXPECT_EQ(most_batch_rows(wished(kAuto, 1), 1000, 100, 3), 334);
  EXPECT_EQ(most_batch_rows(wished(kAuto, kAuto), 1000, 100, 1), 164) << "16384 tokens";
  EXPECT_EQ(most_batch_rows(wished(kAuto, kAuto), 1000, 100000, 1), 1);
  settings::TrainingSettings train = wished(kAuto, 0);
  train.global_batch_size = 50;
  EXPECT_EQ(most_batch_rows(train, 1000, 100, 4), 13);
  train = wished(8, 0);
  train.auto_find_batch_size = true;
  EXPECT_EQ(most_batch_rows(train, 1000, 100, 1), 8) << "it goes down from there";
}

}  // namespace
}  // namespace convoy::recipes
