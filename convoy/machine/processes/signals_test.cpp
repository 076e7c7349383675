// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace convoy::processes {
namespace {

TEST(SignalStream, DropsWhatItHasNotReadWhereNoneIsAroundIt) {
  {
    const SignalStream stream(default_stop_signals());
    ::raise(SIGTERM);
  }
  SignalStream later(default_stop_signals());
  EXPECT_FALSE(later.asked_to_stop());
}

TEST(SignalStream, LeavesWhatItHasNotReadToTheOneAroundIt) {
  SignalStream around(default_stop_signals());
  {
    const SignalStream within(default_stop_signals());
    ::raise(SIGTERM);
  }
  EXPECT_TRUE(around.asked_to_stop());
}

TEST(SignalStream, WhatItHasReadDoesNotReachTheOneAroundIt) {
  SignalStream around(default_stop_signals());
  {
    SignalStream within(default_stop_signals());
    ::raise(SIGTERM);
    EXPECT_TRUE(within.asked_to_stop());
  }
  EXPECT_FALSE(around.asked_to_stop());
}

}  // namespace
}  // namespace convoy::processes
