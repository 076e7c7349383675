// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/failing_start.h"

#include <gtest/gtest.h>

namespace convoy::sweep {
namespace {

using Kind = WorkerMessage::Kind;

class FailingStarts : public ::testing::Test {
 protected:
  void add(size_t worker, const WorkerMessage& message) {
    start_.add(worker, message, now_ += std::chrono::seconds(1));
  }
  void fail(size_t worker, const std::string& way = "exit 1 0") {
    add(worker, {.kind = Kind::Begin, .leases = {1}});
    add(worker, {.kind = Kind::CellFailed, .text = way});
  }

  FailingStart start_{false};
  FailingStart::Clock::time_point now_;
};

TEST_F(FailingStarts, AreFoundAfterAFewFailuresOfOneWay) {
  fail(0);
  fail(1);
  EXPECT_FALSE(start_.found());
  fail(0);
  EXPECT_TRUE(start_.found());
  EXPECT_EQ(start_.num_failed(), 3);
}

TEST_F(FailingStarts, WaitForTheCellsThatRanBeside) {
  add(5, {.kind = Kind::Begin, .leases = {9}});
  for (int cell = 0; cell < 4; ++cell) fail(0);
  EXPECT_FALSE(start_.found());
  // The decision does not wait for a cell that began later.
  add(6, {.kind = Kind::Begin, .leases = {10}});
  add(5, {.kind = Kind::CellFailed, .text = "exit 1 0"});
  EXPECT_TRUE(start_.found());
}

TEST_F(FailingStarts, AreNoneWhereOneCellWorksOrFailsOtherwise) {
  for (int cell = 0; cell < 3; ++cell) fail(0);
  add(0, {.kind = Kind::Stored, .cells = 1});
  EXPECT_FALSE(start_.found());
  FailingStart other(false);
  for (const char* const way : {"exit 1 0", "exit 2 0", "exit 1 0"})
    other.add(0, {.kind = Kind::CellFailed, .text = way}, now_);
  EXPECT_FALSE(other.found());
  FailingStart diverged(false);
  for (int cell = 0; cell < 3; ++cell)
    diverged.add(0, {.kind = Kind::CellFailed, .text = "non_finite 0 0"}, now_);
  EXPECT_FALSE(diverged.found());
  FailingStart resumed(true);
  for (int cell = 0; cell < 3; ++cell)
    resumed.add(0, {.kind = Kind::CellFailed, .text = "exit 1 0"}, now_);
  EXPECT_FALSE(resumed.found());
}

TEST_F(FailingStarts, ADeadWorkerIsNotWaitedFor) {
  add(5, {.kind = Kind::Begin, .leases = {9}});
  for (int cell = 0; cell < 3; ++cell) fail(0);
  start_.forget(5);
  EXPECT_TRUE(start_.found());
}

}  // namespace
}  // namespace convoy::sweep
