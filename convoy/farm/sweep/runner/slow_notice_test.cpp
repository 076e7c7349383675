// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/slow_notice.h"

#include <gtest/gtest.h>

namespace convoy::sweep {
namespace {

using namespace std::chrono_literals;

TEST(SlowNotices, SpeakOfWhatTakesLongAlone) {
  ::testing::internal::CaptureStderr();
  { const SlowNotice quick(Log(), "something quick", 10s); }
  {
    const SlowNotice slow(Log(), "something slow", 20ms, 20ms);
    std::this_thread::sleep_for(1500ms);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("quick"), std::string::npos) << said;
  EXPECT_NE(said.find("something slow\n"), std::string::npos) << said;
  EXPECT_NE(said.find("something slow: 0 s so far\n"), std::string::npos) << said;
}

}  // namespace
}  // namespace convoy::sweep
