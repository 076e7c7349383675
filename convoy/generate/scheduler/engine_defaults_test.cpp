// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/engine_defaults.h"

#include <gtest/gtest.h>

#include <utility>

namespace convoy::scheduler {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

TEST(EngineDefaults, OfACpuLeaveMemoryToTheHost) {
  const EngineDefaults cpu = engine_defaults(Hardware::Cpu, 512 * kGib);
  EXPECT_EQ(cpu.max_rows, 16);
  EXPECT_EQ(cpu.step_tokens, 512);
  EXPECT_EQ(cpu.kv_share, 0.5);
  EXPECT_EQ(cpu.rows_in_flight, 64);
}

TEST(EngineDefaults, OfAGpuFillItsMemory) {
  for (const auto& [gib, step_tokens] :
       {std::pair{0, 2048}, {24, 2048}, {48, 4096}, {79, 8192}, {141, 8192}}) {
    const EngineDefaults gpu = engine_defaults(Hardware::Gpu, gib * kGib);
    EXPECT_EQ(gpu.max_rows, 256);
    EXPECT_EQ(gpu.step_tokens, step_tokens) << gib;
    EXPECT_EQ(gpu.kv_share, 0.9);
    EXPECT_EQ(gpu.rows_in_flight, 256);
  }
}

}  // namespace
}  // namespace convoy::scheduler
