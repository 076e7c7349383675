// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/work_estimate.h"

#include <gtest/gtest.h>

namespace convoy::sweep {
namespace {

TEST(WorkEstimates, GoByThePaceOfAllWorkersAndTheMeasuredCost) {
  WorkEstimate estimate;
  EXPECT_LT(estimate.seconds_left({.guess_seconds = 10}), 0);
  estimate.note(100, {});
  // Guesses take twice what was foretold. In 2 s two workers did 2 s of them as foretold.
  estimate.measure(4'000'000, 2'000'000, 0);
  estimate.note(102, {.guess_seconds = 2});
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 10}), 10);
  // Half a second for each descent: at the same pace of 2 core seconds per second.
  estimate.measure(1'000'000, 0, 2);
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 0, .descents = 8}), 2);
}

TEST(WorkEstimates, WhatWasDoneBeforeTheRunIsNoPace) {
  WorkEstimate estimate;
  estimate.note(0, {.guess_seconds = 1000});
  estimate.measure(1'000'000, 1'000'000, 0);
  estimate.note(1, {.guess_seconds = 1001});
  EXPECT_DOUBLE_EQ(estimate.seconds_left({.guess_seconds = 5}), 5);
}

TEST(WorkEstimates, AnOldPaceIsForgotten) {
  WorkEstimate estimate;
  estimate.measure(1'000'000, 1'000'000, 0);
  for (int second = 0; second <= 100; ++second)
    estimate.note(second, {.guess_seconds = second < 50 ? second * 100.0 : 5000.0 + second - 50});
  EXPECT_NEAR(estimate.seconds_left({.guess_seconds = 7}), 7, 0.5);
}

}  // namespace
}  // namespace convoy::sweep
