// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/spans.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace convoy::profile {
namespace {

TEST(Spans, UnionMergesWhatOverlapsOrTouches) {
  EXPECT_EQ(union_of({{5, 7}, {1, 3}, {3, 4}, {6, 9}, {8, 8}}), (Spans{{1, 4}, {5, 9}}));
  EXPECT_EQ(union_of({}), Spans{});
}

TEST(Spans, DifferenceCutsOut) {
  EXPECT_EQ(difference({{0, 10}}, {{2, 3}, {5, 7}}), (Spans{{0, 2}, {3, 5}, {7, 10}}));
  EXPECT_EQ(difference({{0, 4}, {6, 9}}, {{3, 7}}), (Spans{{0, 3}, {7, 9}}));
  EXPECT_EQ(difference({{0, 4}}, {{0, 4}}), Spans{});
}

std::set<int64_t> moments_of(const Spans& spans) {
  std::set<int64_t> moments;
  for (const Span& span : spans)
    for (int64_t moment = span.begin_ns; moment < span.end_ns; ++moment) moments.insert(moment);
  return moments;
}

// Compares each operation on spans with the same operation on sets of moments.
TEST(Spans, AgreeWithSetsOfMoments) {
  std::mt19937 draw(7);
  const auto some = [&draw] {
    Spans spans(draw() % 8);
    for (Span& span : spans) {
      span.begin_ns = draw() % 40;
      span.end_ns = span.begin_ns + draw() % 9;
    }
    return spans;
  };
  for (int round = 0; round < 500; ++round) {
    const Spans raw = some();
    const Spans left = union_of(raw), right = union_of(some());
    const std::set<int64_t> in_left = moments_of(left), in_right = moments_of(right);
    EXPECT_EQ(in_left, moments_of(raw));
    std::set<int64_t> both, rest;
    for (const int64_t moment : in_left) (in_right.contains(moment) ? both : rest).insert(moment);
    EXPECT_EQ(moments_of(intersection(left, right)), both);
    EXPECT_EQ(moments_of(difference(left, right)), rest);
    EXPECT_EQ(length_ns(left), static_cast<int64_t>(in_left.size()));
  }
}

}  // namespace
}  // namespace convoy::profile
