// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/effective_batch.h"

#include <gtest/gtest.h>

namespace convoy::recipes {
namespace {

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
  // The schedule "constant" does not warm up.
  EXPECT_NE(warning("linear", 64, "constant", 0.1), "");
  EXPECT_EQ(warning("linear", 64, "cosine", 0.1), "");
  EXPECT_EQ(warning("linear", 8, "cosine", 0), "");  // scaled down
  EXPECT_EQ(warning("none", 64, "cosine", 0), "");
}

}  // namespace
}  // namespace convoy::recipes
