// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/effective_batch.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

settings::TrainingSettings training(int64_t batch_size, int64_t grad_accum, int64_t global_batch) {
  settings::TrainingSettings train;
  train.batch_size = batch_size;
  train.grad_accum = grad_accum;
  train.global_batch_size = global_batch;
  return train;
}

EpochOrderConfig planned(const settings::TrainingSettings& train, int64_t ranks) {
  return EpochOrder(1000, {.batch_size = train.batch_rows(),
                           .world_size = ranks,
                           .global_batch = wanted_global_batch(train, ranks)})
      .config();
}

std::string sentence(const EpochOrderConfig& order) { return batch_sentence(order, "row"); }

TEST(EffectiveBatch, IsTheProductWhereNothingElseIsAsked) {
  EXPECT_EQ(wanted_global_batch(training(4, 0, 0), 2), 8);
  EXPECT_EQ(wanted_global_batch(training(4, 3, 0), 2), 24);
  EXPECT_EQ(sentence(planned(training(4, 3, 0), 2)),
            "effective batch: 4 rows per rank x 2 ranks x 3 accumulation = 24 a step");
}

TEST(EffectiveBatch, AccumulationFollowsFromTheGlobalBatch) {
  const EpochOrderConfig eight_ranks = planned(training(1, 0, 64), 8);
  EXPECT_EQ(eight_ranks.grad_accum, 8);
  EXPECT_EQ(sentence(eight_ranks),
            "effective batch: 1 row per rank x 8 ranks x 8 accumulation = 64 a step");
  EXPECT_EQ(planned(training(4, 0, 64), 1).grad_accum, 16);
  EXPECT_EQ(planned(training(64, 0, 64), 1).grad_accum, 1);
}

TEST(EffectiveBatch, IsSpreadWithItsNumbersWhereRanksDoNotDivideIt) {
  EXPECT_EQ(sentence(planned(training(8, 0, 50), 4)),
            "effective batch: 50 a step, spread as 12 or 13 rows per rank: up to 8 rows per rank x "
            "4 ranks x 2 accumulation = 64");
  EXPECT_EQ(sentence(planned(training(8, 0, 40), 4)),
            "effective batch: 40 a step, spread as 10 rows per rank: up to 8 rows per rank x 4 "
            "ranks x 2 accumulation = 64");
}

TEST(EffectiveBatch, OneOfAThingIsSaidSo) {
  EXPECT_EQ(sentence(planned(training(1, 1, 0), 1)),
            "effective batch: 1 row per rank x 1 rank x 1 accumulation = 1 a step");
  EXPECT_EQ(sentence(planned(training(8, 0, 1), 2)),
            "effective batch: 1 a step, spread as 0 or 1 row per rank: up to 8 rows per rank x 2 "
            "ranks x 1 accumulation = 16");
  EXPECT_EQ(idle_ranks_warning(planned(training(8, 0, 1), 2), "row"),
            "the run's steps of 1 row leave 1 of 2 ranks without work");
  EXPECT_EQ(idle_ranks_warning(planned(training(1, 1, 0), 2), "row"), "");
}

TEST(EffectiveBatch, DisagreementIsRefusedWithTheNumbers) {
  EXPECT_EQ(wanted_global_batch(training(4, 2, 16), 2), 16);
  try {
    wanted_global_batch(training(4, 2, 64), 2);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "train.global_batch_size is 64, but batch_size 4 x 2 ranks x grad_accum 2 is 16");
    EXPECT_EQ(error.location().key, "train.grad_accum");
  }
}

}  // namespace
}  // namespace convoy::data
