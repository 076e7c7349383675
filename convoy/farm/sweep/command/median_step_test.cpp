// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/median_step.h"

#include <gtest/gtest.h>

#include <cmath>

namespace convoy::sweep {
namespace {

std::vector<double> five() { return {1, 2, 3, 4, 5}; }

TEST(MedianSteps, EndAProgramThatIsWorseAtTheStep) {
  MedianStep rule({.step = 10}, "loss", five);
  EXPECT_TRUE(rule.wants({R"({"step": 9, "loss": 100})"}));
  EXPECT_TRUE(rule.wants({"{no json"}));
  EXPECT_TRUE(std::isnan(rule.value()));
  EXPECT_FALSE(rule.wants({R"({"step": 12, "loss": 3.5})"}));
  ASSERT_TRUE(rule.pruned());
  EXPECT_EQ(rule.pruned()->text(), "at step 12 it had 3.5, the median of the others is 3");
}

TEST(MedianSteps, DecideOnce) {
  MedianStep rule({.step = 10}, "loss", five);
  EXPECT_TRUE(rule.wants({R"({"step": 10, "loss": 3})"}));
  EXPECT_TRUE(rule.wants({R"({"step": 20, "loss": 300})"}));
  EXPECT_EQ(rule.value(), 3);
}

TEST(MedianSteps, TheGreatestMayBeBest) {
  MedianStep rule({.step = 1, .greatest_is_best = true}, "accuracy", five);
  EXPECT_FALSE(rule.wants({R"({"step": 1, "accuracy": 2})"}));
  MedianStep better({.step = 1, .greatest_is_best = true}, "accuracy", five);
  EXPECT_TRUE(better.wants({R"({"step": 1, "accuracy": 4})"}));
}

TEST(MedianSteps, FewOthersProveNothing) {
  MedianStep rule({.step = 1}, "loss", [] { return std::vector<double>{1, 1, 1, 1}; });
  EXPECT_TRUE(rule.wants({R"({"step": 1, "loss": 9})"}));
}

}  // namespace
}  // namespace convoy::sweep
