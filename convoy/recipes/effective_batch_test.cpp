// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/effective_batch.h"

#include <gtest/gtest.h>

#include "convoy/base/error.h"

namespace convoy::recipes {
namespace {

settings::TrainingSettings training(int64_t batch_size, int64_t grad_accum, int64_t global_batch) {
  settings::TrainingSettings train;
  train.batch_size = batch_size;
  train.grad_accum = grad_accum;
  train.global_batch_size = global_batch;
  return train;
}

data::DealConfig planned(const settings::TrainingSettings& train, int64_t ranks) {
  return data::EpochDeal(1000, {.batch_size = train.batch_size,
                                .world_size = ranks,
                                .global_batch = wanted_global_batch(train, ranks)})
      .config();
}

std::string sentence(const data::DealConfig& deal) { return batch_sentence(deal, "rows"); }

TEST(EffectiveBatch, IsTheProductWhereNothingElseIsAsked) {
  EXPECT_EQ(wanted_global_batch(training(4, 0, 0), 2), 8);
  EXPECT_EQ(wanted_global_batch(training(4, 3, 0), 2), 24);
  EXPECT_EQ(sentence(planned(training(4, 3, 0), 2)),
            "effective batch: 4 rows per rank x 2 ranks x 3 accumulation = 24 a step");
}

TEST(EffectiveBatch, AccumulationFollowsFromTheGlobalBatch) {
  const data::DealConfig eight_ranks = planned(training(1, 0, 64), 8);
  EXPECT_EQ(eight_ranks.grad_accum, 8);
  EXPECT_EQ(sentence(eight_ranks),
            "effective batch: 1 rows per rank x 8 ranks x 8 accumulation = 64 a step");
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

TEST(EffectiveBatch, DisagreementIsRefusedWithTheNumbers) {
  EXPECT_EQ(wanted_global_batch(training(4, 2, 16), 2), 16);
  try {
    wanted_global_batch(training(4, 2, 64), 2);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "train.global_batch_size is 64, but batch_size 4 x 2 ranks x grad_accum 2 is 16");
    EXPECT_EQ(error.place().key, "train.grad_accum");
  }
}

settings::TrainingSettings scaled(const std::string& rule) {
  settings::TrainingSettings train;
  train.learning_rate = 2e-4;
  train.lr_scaling = rule;
  train.lr_reference_batch = 16;
  return train;
}

TEST(LearningRateScaling, FollowsItsRule) {
  EXPECT_DOUBLE_EQ(scaled_learning_rate(scaled("none"), 64), 2e-4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(scaled("linear"), 64), 8e-4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(scaled("sqrt"), 64), 4e-4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(scaled("linear"), 8), 1e-4);
  EXPECT_EQ(scaling_sentence(scaled("none"), 64), "");
  EXPECT_EQ(scaling_sentence(scaled("linear"), 64),
            "learning rate: 0.0002 x 64 / 16 (lr_scaling linear) = 0.0008");
  EXPECT_EQ(scaling_sentence(scaled("sqrt"), 64),
            "learning rate: 0.0002 x sqrt(64 / 16) (lr_scaling sqrt) = 0.0004");
}

std::string warning(const std::string& rule, int64_t global_batch, const std::string& schedule,
                    double warmup_ratio) {
  settings::TrainingSettings train = scaled(rule);
  train.schedule.lr_scheduler_type = schedule;
  train.schedule.warmup_ratio = warmup_ratio;
  return scaling_warning(train, global_batch,
                         {train.schedule, scaled_learning_rate(train, global_batch), 100});
}

TEST(LearningRateScaling, WithoutWarmUpItIsWarnedOf) {
  EXPECT_NE(warning("linear", 64, "cosine", 0).find("scaled by 4"), std::string::npos);
  EXPECT_NE(warning("sqrt", 64, "linear", 0).find("without warm-up"), std::string::npos);
  EXPECT_NE(warning("linear", 64, "constant", 0.1), "");  // that schedule does not warm up
  EXPECT_EQ(warning("linear", 64, "cosine", 0.1), "");
  EXPECT_EQ(warning("linear", 8, "cosine", 0), "");  // scaled down
  EXPECT_EQ(warning("none", 64, "cosine", 0), "");
}

}  // namespace
}  // namespace convoy::recipes
