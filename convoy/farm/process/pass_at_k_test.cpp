// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pass_at_k.h"

#include <gtest/gtest.h>

#include <bit>

namespace convoy::process {
namespace {

// The share of all choices of k samples that hold a right one; the first `right` are right.
double counted_share(int samples, int right, int k) {
  int all = 0;
  int with_right = 0;
  for (uint32_t choice = 0; choice < (1u << samples); ++choice) {
    if (std::popcount(choice) != k) continue;
    ++all;
    with_right += (choice & ((1u << right) - 1)) != 0;
  }
  return static_cast<double>(with_right) / all;
}

TEST(PassAtK, IsTheShareOfChoicesWithARightSample) {
  for (int samples = 1; samples <= 9; ++samples)
    for (int right = 0; right <= samples; ++right)
      for (int k = 1; k <= samples; ++k)
        EXPECT_NEAR(pass_at_k(samples, right, k), counted_share(samples, right, k), 1e-12)
            << samples << " " << right << " " << k;
}

TEST(PassAtK, HoldsForManySamples) {
  // 1 - C(9000, 100) / C(10000, 100), by Python's math.comb.
  EXPECT_NEAR(pass_at_k(10000, 1000, 100), 0.9999748698, 1e-10);
  EXPECT_EQ(pass_at_k(10000, 0, 10000), 0);
}

TEST(PassAtK, PowersOfTwoEndWithAllSamples) {
  EXPECT_TRUE(pass_at_powers(0, 0).is_null());
  EXPECT_EQ(pass_at_powers(1, 1).dump(), R"({"1":1.0})");
  EXPECT_EQ(pass_at_powers(4, 1).dump(), R"({"1":0.25,"2":0.5,"4":1.0})");
  EXPECT_EQ(pass_at_powers(3, 0).dump(), R"({"1":0.0,"2":0.0,"3":0.0})");
}

}  // namespace
}  // namespace convoy::process
