// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/program_answer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/farm/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

jobs::Failure failure_of(const std::string& line) {
  const auto object = json_line(line);
  EXPECT_TRUE(object) << line;
  try {
    if (object) number_of(object->at("loss"), "loss");
  } catch (const TaskFailure& failure) {
    return failure.failure();
  }
  return {};
}

TEST(JsonAnswer, ANumberThatNoDoubleHoldsIsSaidToBeOutOfRange) {
  for (const std::string number : {"1e999", "-1e999", "1.5E+400"}) {
    const jobs::Failure failure = failure_of("{\"loss\": " + number + "}");
    EXPECT_EQ(failure.kind, "non_finite");
    EXPECT_EQ(failure.message, "`loss` is out of the range of a double: " + number);
  }
  EXPECT_EQ(failure_of("{\"loss\":1" + std::string(400, '0') + "}").kind, "non_finite");
}

TEST(JsonAnswer, OtherNumbersAreReadAsBefore) {
  const auto object = json_line(
      R"({"loss":-2.5e-3,"tiny":1e-999,"grad":[1e999,7],"text":"1e999, NaN \" 1e999","nan":NaN,"low":-Infinity})");
  ASSERT_TRUE(object);
  EXPECT_EQ(number_of(object->at("loss"), "loss"), -2.5e-3);
  EXPECT_EQ(number_of(object->at("tiny"), "tiny"), 0);
  EXPECT_EQ(object->at("grad")[1], 7);
  EXPECT_EQ(object->at("text"), "1e999, NaN \" 1e999");
  EXPECT_TRUE(std::isnan(number_of(object->at("nan"), "nan")));
  EXPECT_TRUE(std::isnan(number_of(object->at("low"), "low")));
  for (const char* const line :
       {"{\"loss\": 1e}", "{\"loss\": 0x1}", "{\"loss\": 1e999x}", "{1e999: 1"})
    EXPECT_FALSE(json_line(line)) << line;
  EXPECT_EQ(failure_of(R"({"loss": "three"})").kind, "output");
  // Some writers of JSON write infinity as a text.
  EXPECT_TRUE(std::isnan(number_of(json_line(R"({"loss": "inf"})")->at("loss"), "loss")));
}

TEST(JsonAnswer, NullIsNoNumberAtAll) {
  const jobs::Failure failure = failure_of(R"({"loss": null})");
  EXPECT_EQ(failure.kind, "output");
  EXPECT_EQ(failure.message, "`loss` is not a number: null");
}

}  // namespace
}  // namespace convoy::sweep
