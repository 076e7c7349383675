// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/peak_line.h"

#include <gtest/gtest.h>

namespace convoy::sizing {
namespace {

TEST(PeakLine, FollowsWhatWasMeasured) {
  PeakLine line(10);
  line.add({.tokens = 16, .bytes = 1000});
  EXPECT_EQ(line.predict(16), 1000);
  EXPECT_EQ(line.predict(116), 2000) << "by formula while there is one point";
  line.add({.tokens = 1016, .bytes = 21000});
  EXPECT_EQ(line.predict(2016), 41000) << "20 bytes a token were measured";
  EXPECT_EQ(line.curvature(), 0) << "two points are straight";
}

TEST(PeakLine, NearPointsDoNotMakeTheSlope) {
  PeakLine line(10);
  line.add({.tokens = 100, .bytes = 2000});
  line.add({.tokens = 1000, .bytes = 20000});
  line.add({.tokens = 1010, .bytes = 20900});  // noise makes it 90 bytes a token
  EXPECT_NEAR(static_cast<double>(line.predict(2010)), 20900 + 1000 * 18900.0 / 910, 1);
}

TEST(PeakLine, SafeTokensLeaveRoomAndGoInSteps) {
  PeakLine line(10);
  line.add({.tokens = 16, .bytes = 1000});
  EXPECT_EQ(line.safe_tokens(1000000), 1024) << "a first step";
  line.add({.tokens = 1024, .bytes = 1000 + 10 * 1008});
  EXPECT_EQ(line.safe_tokens(1000000000), 4096) << "four times what was measured";
  const int64_t tokens = line.safe_tokens(30000);
  EXPECT_GT(tokens, 1024);
  EXPECT_LE(1000 + 10 * (tokens - 16), 30000);
  EXPECT_LE(static_cast<double>(line.predict(1024)) + 11.5 * static_cast<double>(tokens - 1024),
            30000);
  EXPECT_LT(line.safe_tokens(5000), 410) << "the last was too much";
}

TEST(PeakLine, AFlatBeginningIsNoSlope) {
  PeakLine line(10);
  line.add({.tokens = 16, .bytes = 1000});
  line.add({.tokens = 200, .bytes = 1000});
  EXPECT_LE(line.safe_tokens(2000), 300) << "the formula is the tighter bound";
  EXPECT_EQ(line.tokens_within(2000), 300);
}

TEST(PeakLine, TellsCurvature) {
  PeakLine line(10);
  line.add({.tokens = 0, .bytes = 0});
  line.add({.tokens = 50, .bytes = 600});
  line.add({.tokens = 100, .bytes = 1000});
  EXPECT_NEAR(line.curvature(), 0.1, 1e-9);
}

}  // namespace
}  // namespace convoy::sizing
