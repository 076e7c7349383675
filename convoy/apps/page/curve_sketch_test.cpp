// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/curve_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace convoy::page {
namespace {

TEST(CurveSketch, KeepsFewPointsAsTheyAre) {
  CurveSketch curve;
  for (int step = 1; step <= 100; ++step) curve.add(step, step * 0.5);
  ASSERT_EQ(curve.buckets().size(), 100U);
  EXPECT_EQ(curve.buckets()[9].step, 10);
  EXPECT_EQ(curve.buckets()[9].sum, 5.0);
}

TEST(CurveSketch, AMillionPointsKeepMeansAndExtremesInBoundedMemory) {
  CurveSketch curve;
  const int64_t points = 1'000'000;
  for (int64_t step = 1; step <= points; ++step)
    curve.add(step, step == 123'456 ? 50.0 : static_cast<double>(step % 7));
  EXPECT_LT(curve.buckets().size(), CurveSketch::kMostBuckets);
  EXPECT_GT(curve.buckets().size(), CurveSketch::kMostBuckets / 4);
  int64_t counted = 0;
  double sum = 0;
  double high = 0;
  int64_t before = 0;
  for (const CurveBucket& bucket : curve.buckets()) {
    EXPECT_GT(bucket.step, before);
    before = bucket.step;
    counted += bucket.points;
    sum += bucket.sum;
    high = std::max(high, bucket.high);
  }
  EXPECT_EQ(counted, points);
  EXPECT_EQ(before, points);
  EXPECT_EQ(high, 50.0);
  EXPECT_NEAR(sum / static_cast<double>(points), 3.0, 1e-3);
}

TEST(CurveSketch, NotFiniteValuesAreGaps) {
  CurveSketch curve;
  curve.add(1, 1.0);
  curve.add(2, NAN);
  curve.add(3, INFINITY);
  curve.add(4, 2.0);
  ASSERT_EQ(curve.buckets().size(), 3U);
  EXPECT_EQ(curve.buckets()[1].points, 0);
  for (int64_t step = 5; step < 100'000; ++step) curve.add(step, step % 2 == 0 ? NAN : 1.0);
  EXPECT_LT(curve.buckets().size(), CurveSketch::kMostBuckets);
}

TEST(CurveSketch, AResumedRunReplacesWhatFollowed) {
  CurveSketch curve;
  for (int step = 1; step <= 10; ++step) curve.add(step, 1.0);
  curve.cut_after(6);
  curve.add(7, 5.0);
  ASSERT_EQ(curve.buckets().size(), 7U);
  EXPECT_EQ(curve.buckets().back().sum, 5.0);
}

}  // namespace
}  // namespace convoy::page
