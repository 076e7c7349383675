// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/restart_policy.h"

#include <gtest/gtest.h>

namespace convoy::rendezvous {
namespace {

TEST(RestartPolicy, WithoutRestartsTheFirstFailureEndsTheJobWithItsOwnCode) {
  RestartPolicy policy({});
  const RestartDecision decision = policy.record_failure(137, 0);
  EXPECT_FALSE(decision.restart());
  EXPECT_EQ(decision.exit_code, 137);
}

TEST(RestartPolicy, RestartsUntilTheyAreUsedUp) {
  RestartPolicy policy({.max_restarts = 2});
  EXPECT_TRUE(policy.record_failure(1, 10).restart());
  EXPECT_EQ(policy.attempt(), 1);
  EXPECT_TRUE(policy.record_failure(1, 20).restart());
  const RestartDecision last = policy.record_failure(139, 30);
  EXPECT_FALSE(last.restart());
  EXPECT_EQ(last.exit_code, 139);
  EXPECT_EQ(policy.failures(), 3);
  EXPECT_EQ(policy.restarts(), 2);
}

TEST(RestartPolicy, ThreeFailuresWithoutProgressEndIn16) {
  RestartPolicy policy({.max_restarts = 100});
  EXPECT_TRUE(policy.record_failure(1, 5).restart());  // five steps count as progress
  EXPECT_TRUE(policy.record_failure(1, 5).restart());
  EXPECT_TRUE(policy.record_failure(1, 5).restart());
  const RestartDecision last = policy.record_failure(1, 5);
  EXPECT_FALSE(last.restart());
  EXPECT_EQ(last.exit_code, 16);
}

TEST(RestartPolicy, ProgressStartsTheCountAgain) {
  RestartPolicy policy({.max_restarts = 100});
  for (int64_t step = 1; step <= 20; ++step) {
    EXPECT_TRUE(policy.record_failure(1, step).restart());
    EXPECT_TRUE(policy.record_failure(1, step).restart());
    EXPECT_TRUE(policy.record_failure(1, step - 1).restart());
  }
}

TEST(RestartPolicy, AJobThatNeverMadeAStepEndsAtItsThirdFailure) {
  RestartPolicy policy({.max_restarts = 100});
  EXPECT_TRUE(policy.record_failure(1, 0).restart());
  EXPECT_TRUE(policy.record_failure(1, 0).restart());
  EXPECT_EQ(policy.record_failure(1, 0).exit_code, 16);
}

TEST(RestartPolicy, UnknownProgressLeavesTheCountToMaxRestarts) {
  RestartPolicy policy({.max_restarts = 5});
  for (int failure = 0; failure < 5; ++failure)
    EXPECT_TRUE(policy.record_failure(1, std::nullopt).restart());
  EXPECT_EQ(policy.record_failure(9, std::nullopt).exit_code, 9);
}

TEST(RestartPolicy, ResizesCostNoRestart) {
  RestartPolicy policy({.max_restarts = 1});
  for (int resize = 0; resize < 10; ++resize) policy.record_resize(resize);
  EXPECT_EQ(policy.attempt(), 10);
  EXPECT_TRUE(policy.record_failure(1, 50).restart());
  EXPECT_EQ(policy.attempt(), 11);
  EXPECT_EQ(policy.failures(), 1);
  EXPECT_EQ(policy.resizes(), 10);
}

TEST(RestartPolicy, LostNodesCostNoRestartButCountWithoutProgress) {
  RestartPolicy policy({.max_restarts = 0});
  EXPECT_TRUE(policy.record_lost_node(10).restart());
  EXPECT_TRUE(policy.record_lost_node(20).restart());
  EXPECT_EQ(policy.restarts(), 0);
  EXPECT_TRUE(policy.record_lost_node(20).restart());
  EXPECT_TRUE(policy.record_lost_node(20).restart());
  EXPECT_EQ(policy.record_lost_node(20).exit_code, 16);
}

TEST(RestartPolicy, CodesThatARestartDoesNotCure) {
  RestartPolicy policy({.max_restarts = 5, .final_codes = final_codes_of_worker()});
  const RestartDecision decision = policy.record_failure(2, 0);
  EXPECT_FALSE(decision.restart());
  EXPECT_EQ(decision.exit_code, 2);
}

}  // namespace
}  // namespace convoy::rendezvous
