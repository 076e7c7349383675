// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/step_range.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::settings {
namespace {

TEST(StepRange, HasBothItsEndsOrIsANumberOfSteps) {
  EXPECT_EQ(parse_step_range("10:15"), (StepRange{.first = 10, .num_steps = 6}));
  EXPECT_EQ(parse_step_range("10:15").last(), 15);
  EXPECT_EQ(parse_step_range("1:1"), (StepRange{.first = 1, .num_steps = 1}));
  EXPECT_EQ(parse_step_range("5"), (StepRange{.first = 0, .num_steps = 5}));
  EXPECT_TRUE(parse_step_range("").empty());
  EXPECT_TRUE(parse_step_range("0").empty());
}

TEST(StepRange, SaysWhatIsWrong) {
  const auto problem = [](const char* text) { return step_range_problem(text).value_or(""); };
  EXPECT_EQ(problem("5:3"), "the last step comes before the first, found \"5:3\"");
  EXPECT_EQ(problem("0:3"), "steps are numbered from 1, found \"0:3\"");
  EXPECT_EQ(problem("1:200000"), "at most 100000 steps are traced, found 200000");
  EXPECT_EQ(problem("2000000000:2000000001"), "");
  for (const char* text : {"abc", "3-5", "3:", ":5", "-2", "3:5:7", "3 ", "99999999999999999999"})
    EXPECT_NE(problem(text).find("wanted a first and a last step"), std::string::npos) << text;
  EXPECT_THROW(parse_step_range("5:3"), ConfigError);
}

}  // namespace
}  // namespace convoy::settings
