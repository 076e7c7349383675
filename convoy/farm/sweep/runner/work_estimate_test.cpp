// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/work_estimate.h"

#include <gtest/gtest.h>

namespace convoy::sweep {
namespace {

TEST(WorkEstimates, GoByThePaceOfAllWorkersAndTheMeasuredCost) {
  WorkEstimate estimate;
  EXPECT_LT(estimate.seconds_left({.guess_seconds = 10}, {}), 0);
  estimate.note(100, {});
  // Guesses take twice the predicted time: in 2 s, two workers did the work of 2 predicted seconds.
  estimate.measure(4'000'000, 2'000'000, 0);
  estimate.note(102, {.guess_seconds = 2});
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 10}, {}), 10);
  // A descent takes half a second, and the pace is still 2 core seconds per second.
  estimate.measure(1'000'000, 0, 2);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 0, .descents = 8}, {}), 2);
}

TEST(WorkEstimates, WhatWasDoneBeforeTheRunIsNoPace) {
  WorkEstimate estimate;
  estimate.note(0, {.guess_seconds = 1000});
  estimate.measure(1'000'000, 1'000'000, 0);
  estimate.note(1, {.guess_seconds = 1001});
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 5}, {}), 5);
}

// The cells take a minute each on one worker, so no cell ends within the 30 s by which the pace is
// measured.
TEST(WorkEstimates, LongDescentsAreLaidOutOverTheWorkers) {
  WorkEstimate estimate;
  EXPECT_LT(estimate.seconds_left({.descents = 4}, {{.seconds = 10, .descents = 1}}), 0);
  estimate.note(0, {});
  estimate.measure(60'000'000, 0, 1);
  estimate.note(60, {.descents = 1});
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 3}, {{.seconds = 0, .descents = 1}}), 180);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 3}, {{.seconds = 45, .descents = 1}}), 135);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 1}, {{.seconds = 75, .descents = 1}}), 0);
  // The worker that is done in 10 s takes the third descent.
  const std::vector<BusyWorker> two = {{.seconds = 50, .descents = 1},
                                       {.seconds = 20, .descents = 1}};
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 2}, two), 40);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 3}, two), 70);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 5}, two), 130);
  // One worker is idle, and the other one has a batch of four.
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.descents = 5}, {{}, {.seconds = 30, .descents = 4}}),
                   210);
}

// A descent takes a minute, and guesses are computed beside it. The pace of 30 s would see either
// no descent or no guess.
TEST(WorkEstimates, GuessesFillWhatLongDescentsLeave) {
  WorkEstimate estimate;
  estimate.note(0, {});
  estimate.measure(60'000'000, 0, 1);
  estimate.measure(4'000'000, 2'000'000, 0);  // twice the predicted time
  estimate.note(60, {.guess_seconds = 2, .descents = 1});
  const std::vector<BusyWorker> two = {{.seconds = 30, .descents = 1}, {}};
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 90, .descents = 3}, two), 165);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 1, .descents = 3}, two), 90);
  // The pace alone decides if only guesses are left.
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 32}, two), 60);
}

TEST(WorkEstimates, AnOldPaceIsForgotten) {
  WorkEstimate estimate;
  estimate.measure(1'000'000, 1'000'000, 0);
  for (int second = 0; second <= 100; ++second)
    estimate.note(second, {.guess_seconds = second < 50 ? second * 100.0 : 5000.0 + second - 50});
  EXPECT_NEAR(estimate.seconds_left({.guess_seconds = 7}, {}), 7, 0.5);
}

}  // namespace
}  // namespace convoy::sweep
