// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/time_text.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(TimeText, WritesAMoment) {
  EXPECT_EQ(utc_time_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time_text(1'700'000'000, "%Y%m%d_%H%M%S"), "20231114_221320");
  EXPECT_EQ(utc_time_text(0, ""), "");
  EXPECT_EQ(local_time_text(1'700'000'000).size(), 19u);
}

}  // namespace
}  // namespace convoy
