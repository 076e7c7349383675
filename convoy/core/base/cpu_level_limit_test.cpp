// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/cpu_level_limit.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy {
namespace {

constexpr int kAvx2 = 1;
constexpr int kAvx512 = 2;
constexpr int kAmx = 4;

std::string refusal(int best, int highest, std::string_view wanted) {
  try {
    limited_cpu_level(best, highest, wanted);
  } catch (const ConfigError& error) {
    return error.sentence();
  }
  return "";
}

TEST(CpuLevelLimit, LowersTheLevelAndNeverRaisesIt) {
  EXPECT_EQ(limited_cpu_level(kAvx512, kAmx, ""), kAvx512);
  EXPECT_EQ(limited_cpu_level(kAvx512, kAmx, "avx512"), kAvx512);
  EXPECT_EQ(limited_cpu_level(kAvx512, kAmx, "avx2"), kAvx2);
  EXPECT_EQ(limited_cpu_level(kAmx, kAmx, "baseline"), 0);
  EXPECT_NE(refusal(kAvx2, kAmx, "amx").find("this CPU lacks: it has baseline, avx2"),
            std::string::npos);
  EXPECT_NE(refusal(kAvx2, kAmx, "sse9").find("no level of loops: this CPU has baseline, avx2"),
            std::string::npos);
}

TEST(CpuLevelLimit, AnyHigherLevelIsTheHighestOfLoopsThatStopBeforeIt) {
  EXPECT_EQ(limited_cpu_level(kAvx512, kAvx512, "amx"), kAvx512);
  EXPECT_NE(refusal(kAvx2, kAvx512, "amx"), "");
}

}  // namespace
}  // namespace convoy
