// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/clock_skew.h"

#include <gtest/gtest.h>

namespace convoy::rendezvous {
namespace {

ClockSample sample(double ahead_s, double trip_s) {
  const auto ns = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
  return {ns(100), ns(100 + trip_s / 2 + ahead_s), ns(100 + trip_s)};
}

TEST(ClockSkew, IsJudgedByTheShortestTrip) {
  EXPECT_EQ(clock_skew_warning("a", {sample(45.0, 30.0), sample(0.2, 0.01)}), std::nullopt);
  EXPECT_TRUE(clock_skew_warning("a", {sample(45.0, 30.0)}).has_value());
  const std::optional<std::string> behind = clock_skew_warning("b", {sample(-3.0, 0.1)});
  ASSERT_TRUE(behind.has_value());
  EXPECT_TRUE(behind->starts_with("the clock of b is 3.000 s behind")) << *behind;
  EXPECT_EQ(clock_skew_warning("a", {}), std::nullopt);
}

TEST(ClockSkew, SlowAnswersExplainThemselves) {
  EXPECT_EQ(clock_skew_warning("a", {sample(5.0, 10.0)}), std::nullopt);
  EXPECT_EQ(clock_skew_warning("a", {sample(5.0, -1.0)}), std::nullopt);
}

}  // namespace
}  // namespace convoy::rendezvous
