// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/node_clocks.h"

#include <gtest/gtest.h>

namespace convoy::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr uint64_t kNode = 7;

class NodeClocksTest : public ::testing::Test {
 protected:
  // Sends a question if one is due. Its answer arrives after `trip_s` and comes from a clock that
  // is `ahead_s` ahead.
  std::optional<std::string> round(double ahead_s, double trip_s = 0.001) {
    if (!clocks_.asks(kNode, now_, wall_ns_)) return std::nullopt;
    const auto trip_ns = static_cast<int64_t>(trip_s * kSecond_ns);
    const int64_t peer_ns =
        wall_ns_ + trip_ns / 2 + static_cast<int64_t>(ahead_s * static_cast<double>(kSecond_ns));
    wall_ns_ += trip_ns;
    return clocks_.answered(kNode, "node 1 host-b", peer_ns, wall_ns_);
  }

  NodeClocks clocks_;
  NodeClocks::Clock::time_point now_{1h};
  int64_t wall_ns_ = 1'800'000'000 * kSecond_ns;
};

TEST_F(NodeClocksTest, ANodeThatIsOffIsToldOfOnce) {
  const std::optional<std::string> warning = round(-3.0);
  ASSERT_TRUE(warning.has_value());
  EXPECT_TRUE(warning->starts_with("the clock of node 1 host-b is 3.000 s behind this host's"))
      << *warning;
  EXPECT_NE(warning->find("times in logs will not match"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("the job itself does not need it"), std::string::npos) << *warning;
  now_ += 2min;
  EXPECT_FALSE(round(-3.0).has_value());
}

TEST_F(NodeClocksTest, ClocksThatAgreeAreNotSpokenOfAndAskedRarely) {
  for (int turn = 0; turn < 3; ++turn) EXPECT_FALSE(round(0.4).has_value());
  EXPECT_FALSE(clocks_.asks(kNode, now_ + 59s, wall_ns_));
  EXPECT_TRUE(clocks_.asks(kNode, now_ + 60s, wall_ns_));
  EXPECT_FALSE(clocks_.asks(kNode, now_ + 3min, wall_ns_)) << "an answer is still on its way";
}

TEST_F(NodeClocksTest, ASlowAnswerSaysNothingUntilAQuickOneDoes) {
  EXPECT_FALSE(round(2.0, 4.0).has_value());
  EXPECT_TRUE(round(2.0).has_value());
}

TEST_F(NodeClocksTest, AClockThatIsSetWhileTheJobRunsIsSeen) {
  for (int turn = 0; turn < 6; ++turn, now_ += 1min) EXPECT_FALSE(round(0.0, 0.0001).has_value());
  bool seen = false;
  for (int turn = 0; turn < 3; ++turn, now_ += 1min) seen = seen || round(90.0).has_value();
  EXPECT_TRUE(seen);
}

TEST_F(NodeClocksTest, WhatNobodyAskedForIsIgnored) {
  EXPECT_FALSE(clocks_.answered(kNode, "node 1", 0, wall_ns_).has_value());
  ASSERT_TRUE(clocks_.asks(kNode, now_, wall_ns_));
  clocks_.forget(kNode);
  EXPECT_FALSE(clocks_.answered(kNode, "node 1", 0, wall_ns_).has_value());
}

}  // namespace
}  // namespace convoy::rendezvous
