// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/core/base/error.h"

namespace convoy::sweep {
namespace {

Tally workload_tally_of(const std::vector<double>& losses) {
  Tally tally;
  for (const double loss : losses) {
    ++tally.guesses;
    tally.accept(loss);
  }
  return tally;
}

TEST(Tally, MergesInAnyOrderToTheSameBits) {
  const Tally a = workload_tally_of({0.1, 1e-9, 3}), b = workload_tally_of({1e6, 0.2}),
              c = workload_tally_of({-0.7});
  Tally left = a, right = c;
  left.merge(b);
  left.merge(c);
  right.merge(a);
  right.merge(b);
  EXPECT_EQ(left, right);
  EXPECT_EQ(left, workload_tally_of({3, 0.2, -0.7, 0.1, 1e-9, 1e6}));
  EXPECT_EQ(Tally::parse(left.json()), left);
}

TEST(Tally, HasMeanAndStandardError) {
  const Tally tally = workload_tally_of({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(tally.mean(), 2.5);
  EXPECT_NEAR(tally.standard_error(), std::sqrt(5.0 / 3.0 / 4.0), 1e-12);
  EXPECT_TRUE(std::isnan(Tally().mean()));
  EXPECT_TRUE(std::isnan(workload_tally_of({1}).standard_error()));
}

TEST(Tally, CountsLossesThatItsSumsCannotHold) {
  const Tally tally = workload_tally_of({3, 0x1p40, std::nan(""), HUGE_VAL});
  EXPECT_EQ(tally.accepted, 4);
  EXPECT_EQ(tally.non_finite, 3);
  EXPECT_EQ(tally.mean(), 3);
}

TEST(FixedSum, IsWrittenExactly) {
  FixedSum sum;
  for (int turn = 0; turn < 1000; ++turn) sum.add(-1e11);
  EXPECT_EQ(FixedSum::parse(sum.text()), sum);
  EXPECT_DOUBLE_EQ(sum.value(), -1e14);
  for (const char* wrong : {"", "-", "1.5", "99999999999999999999999999999999999999999"})
    EXPECT_THROW(FixedSum::parse(wrong), DataError) << wrong;
  EXPECT_THROW(Tally::parse("[1"), DataError);
  EXPECT_THROW(Tally::parse("{\"guesses\": \"x\"}"), DataError);
}

}  // namespace
}  // namespace convoy::sweep
