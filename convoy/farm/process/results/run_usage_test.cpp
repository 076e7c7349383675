// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/run_usage.h"

#include <gtest/gtest.h>

namespace convoy::process {
namespace {

WorkerStatus status(int64_t tokens, double prefill_seconds, double decode_seconds) {
  WorkerStatus status;
  status.engine.decode_tokens = tokens;
  status.engine.prefill_seconds = prefill_seconds;
  status.engine.decode_seconds = decode_seconds;
  status.engine.running = 3;
  status.engine.kv_use = 0.5;
  status.worker.rows_held = 4;
  return status;
}

TEST(UsageBetween, IsOfAllWorkersSinceTheLastLook) {
  const UsageFigures figures =
      usage_between({{0, status(100, 1, 1)}, {1, status(50, 0, 0)}},
                    {{0, status(300, 1.5, 2)}, {1, status(150, 0.5, 1)}}, 2);
  EXPECT_DOUBLE_EQ(figures.tokens_per_second, 150);
  EXPECT_DOUBLE_EQ(figures.prefill_share, 0.25);
  EXPECT_DOUBLE_EQ(figures.decode_share, 0.5);
  EXPECT_EQ(figures.running, 6);
  EXPECT_EQ(figures.leases, 8);
  EXPECT_DOUBLE_EQ(figures.kv_use, 0.5);
}

TEST(UsageBetween, AReplacedWorkerBeginsAtZero) {
  const UsageFigures figures =
      usage_between({{0, status(1000, 9, 9)}}, {{0, status(10, 0.1, 0.2)}}, 1);
  EXPECT_DOUBLE_EQ(figures.tokens_per_second, 10);
  EXPECT_DOUBLE_EQ(figures.prefill_share, 0.1);
}

TEST(UsageBetween, NoWorkersAreNoFigures) { EXPECT_EQ(usage_between({}, {}, 1).running, 0); }

}  // namespace
}  // namespace convoy::process
