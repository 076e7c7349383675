// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/memory_ladder.h"

#include <gtest/gtest.h>

namespace convoy::scheduler {
namespace {

// A model with 7 units of weights and 1 unit of KV for a row of full length, so that the budgets
// below are easy to read.
constexpr int64_t kUnit = 1'600'000;
const MemoryNeeds kNeeds{.program_bytes = kUnit,
                         .weight_bytes = 7 * kUnit,
                         .int8_weight_bytes = 4 * kUnit,
                         .int4_weight_bytes = 2 * kUnit,
                         .kv_bytes_per_token = kUnit / 1600,
                         .int8_kv_bytes_per_token = kUnit / 3200,
                         .step_bytes_per_token = kUnit / 512,
                         .block_tokens = 16};

MemoryRequest request(double units) {
  return {.budget_bytes = static_cast<int64_t>(units * kUnit),
          .rows = 8,
          .row_tokens = 1600,
          .step_tokens = 512};
}

TEST(MemoryLadder, TakesTheFirstRungThatFits) {
  EXPECT_EQ(climb_down(kNeeds, request(17)).rung, Rung::All);
  EXPECT_EQ(climb_down(kNeeds, request(16.9)).rung, Rung::FewerRows);
  EXPECT_EQ(climb_down(kNeeds, request(13)).rung, Rung::FewerRows);
  EXPECT_EQ(climb_down(kNeeds, request(12.9)).rung, Rung::Recompute);
  EXPECT_EQ(climb_down(kNeeds, request(9.2)).rung, Rung::Recompute);
  EXPECT_EQ(climb_down(kNeeds, request(9.0)).rung, Rung::Int8Kv);
  EXPECT_EQ(climb_down(kNeeds, request(8.5)).rung, Rung::Int8Weights);
  EXPECT_EQ(climb_down(kNeeds, request(5)).rung, Rung::Int4Weights);
  EXPECT_EQ(climb_down(kNeeds, request(3)).rung, Rung::None);
}

TEST(MemoryLadder, StaysWithinTheBudgetOnEveryRung) {
  for (double units = 3.7; units < 20; units += 0.05) {
    const MemoryRequest wanted = request(units);
    const MemoryLadderPlan plan = climb_down(kNeeds, wanted);
    ASSERT_NE(plan.rung, Rung::None) << units;
    EXPECT_LE(plan.bytes, wanted.budget_bytes) << units;
    EXPECT_GE(plan.kv_blocks * kNeeds.block_tokens, wanted.row_tokens) << units;
    EXPECT_GE(plan.rows, 1) << units;
    EXPECT_LE(plan.kv_blocks, plan.rows * 100) << units;
  }
}

TEST(MemoryLadder, RowsHaveTheirStatesBesideTheirKeys) {
  MemoryNeeds needs = kNeeds;
  needs.state_bytes_per_row = kUnit / 2;
  const MemoryLadderPlan with = climb_down(needs, request(21)),
                         without = climb_down(kNeeds, request(21));
  EXPECT_EQ(with.rung, Rung::All);
  EXPECT_EQ(with.bytes - without.bytes, 8 * kUnit / 2);
  EXPECT_EQ(climb_down(needs, request(20.9)).rung, Rung::FewerRows);
}

TEST(MemoryLadder, KeepsAsManyBlocksAsTheBudgetHas) {
  const MemoryLadderPlan plan = climb_down(kNeeds, request(12));
  EXPECT_EQ(plan.rung, Rung::Recompute);
  EXPECT_EQ(plan.kv_blocks, 300);  // other needs take 9 of the 12 units
}

TEST(MemoryLadder, KeepsWhatTheUserSettled) {
  MemoryRequest wanted = request(6);
  wanted.int8_weights = true;
  const MemoryLadderPlan plan = climb_down(kNeeds, wanted);
  EXPECT_TRUE(plan.int8_weights);
  EXPECT_FALSE(plan.int4_weights);
  wanted.budget_bytes = 4 * kUnit;  // int4 weights would fit into it
  EXPECT_EQ(climb_down(kNeeds, wanted).rung, Rung::None);
}

TEST(MemoryLadder, SaysWhatItWouldNeed) {
  const MemoryLadderPlan plan = climb_down(kNeeds, request(1));
  EXPECT_EQ(plan.rung, Rung::None);
  MemoryRequest enough = request(1);
  enough.budget_bytes = plan.bytes;
  EXPECT_EQ(climb_down(kNeeds, enough).rung, Rung::Int4Weights);
  EXPECT_NE(plan.text(kUnit).find("needs"), std::string::npos);
}

}  // namespace
}  // namespace convoy::scheduler
