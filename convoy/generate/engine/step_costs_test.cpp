// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/step_costs.h"

#include <gtest/gtest.h>

namespace convoy::generate {
namespace {

TEST(StepCosts, RequestsBeginTogetherWhereTheHostIsSlower) {
  StepCosts costs;
  EXPECT_EQ(costs.fewest_admissions(64), 1) << "nothing is known";
  for (int step = 0; step < 4; ++step) costs.add_launches(6e-3);
  EXPECT_EQ(costs.fewest_admissions(64), 1) << "no step was recorded";
  costs.add_step(2e-3, true);
  EXPECT_EQ(costs.fewest_admissions(64), 1) << "its time may be that of the step before";
  costs.add_step(2e-3, true);
  EXPECT_EQ(costs.fewest_admissions(64), 4);
  EXPECT_EQ(costs.fewest_admissions(200), 13);
  EXPECT_EQ(costs.fewest_admissions(16), 1);
}

TEST(StepCosts, ALargeModelAdmitsAtOnce) {
  StepCosts costs;
  for (int step = 0; step < 4; ++step) costs.add_launches(6e-3);
  costs.add_step(20e-3, false);
  for (int step = 0; step < 9; ++step) costs.add_step(5.7e-3, true);
  EXPECT_EQ(costs.fewest_admissions(64), 1);
}

TEST(StepCosts, StepsThatCompileKernelsDoNotCount) {
  StepCosts costs;
  for (const double seconds : {2.0, 1.0, 0.5, 1e-3}) costs.add_launches(seconds);
  for (int step = 0; step < 2; ++step) costs.add_step(2e-3, true);
  EXPECT_EQ(costs.fewest_admissions(64), 1);
}

}  // namespace
}  // namespace convoy::generate
