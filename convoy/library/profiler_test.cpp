// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/profiler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/library/network_test.h"
#include "convoy/machine/profile/profiled_run.h"
#include "files/temporary_folder.h"

namespace convoy::detail {
namespace {

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Runs six steps in which rank 1 computes longer than rank 0.
void run_steps(ProcessGroup& group, PerformanceProfiler& profiler) {
  for (int step = 0; step < 6; ++step) {
    profiler.phase("data");
    wait_ms(5);
    profiler.phase("forward");
    wait_ms(group.rank() == 1 ? 160 : 10);  // different enough for a busy machine
    profiler.phase("reduce");
    group.all_reduce(at::ones({1000}));
    profiler.step();
  }
}

RANK_BODY(ProfiledSteps) {
  const auto group = init();
  const testing::TemporaryFolder own;
  PerformanceProfiler profiler(group, own / "profile", {.first = 2, .count = 4});
  run_steps(*group, profiler);
  const std::string report = profiler.finish();
  EXPECT_EQ(report.empty(), group->rank() != 0);
  if (!group->is_leader()) return;
  EXPECT_NE(report.find("steps 2 to 5 of 2 ranks"), std::string::npos) << report;
  EXPECT_NE(report.find("comes last: the others wait"), std::string::npos) << report;
  EXPECT_TRUE(std::filesystem::exists(own / "profile/traces/run.perfetto-trace"));
  const profile::ProfiledRun run = profile::read_profiled_run(own / "profile");
  const profile::RankBreakdown &first = run.breakdown.ranks[0], &second = run.breakdown.ranks[1];
  EXPECT_GE(first.data_ms, 5);
  EXPECT_GE(second.compute_ms, first.compute_ms + 60);
  EXPECT_GE(first.waiting_ms, 50);  // it waits for rank 1
  EXPECT_GE(second.awaited_ms, 50);
  EXPECT_LT(second.waiting_ms, first.waiting_ms);
}
TEST(PerformanceProfiler, SaysWhoWaitsForWhom) { expect_all_well(start_ranks(2, "ProfiledSteps")); }

RANK_BODY(TooFewSteps) {
  const auto group = init();
  const testing::TemporaryFolder own;
  EXPECT_THROW(PerformanceProfiler(group, own / "profile", {.first = 0, .count = 4}), ConfigError);
  PerformanceProfiler profiler(group, own / "profile");
  EXPECT_THROW(PerformanceProfiler(group, own / "profile"), ConfigError);
  profiler.step();
  EXPECT_THROW(profiler.finish(), ConfigError);
}
TEST(PerformanceProfiler, StepsThatNeverCameAreAnError) {
  expect_all_well(start_ranks(2, "TooFewSteps"));
}

}  // namespace
}  // namespace convoy::detail
