// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/workers/worker.h"

#include <gtest/gtest.h>

#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/farm/workers/toy_work_test.h"
#include "files/temporary_folder.h"

namespace convoy::workers {
namespace {

using namespace std::chrono_literals;

TEST(ServerWait, SaysItsLimitAndWhatIsLeft) {
  EXPECT_EQ(server_wait_text(10min), "waiting for it, 10 min at most, 10 min more");
  EXPECT_EQ(server_wait_text(539'900ms), "waiting for it, 10 min at most, 9 min more");
  EXPECT_EQ(server_wait_text(75s), "waiting for it, 10 min at most, 1 min 15 s more");
  EXPECT_EQ(server_wait_text(400ms), "waiting for it, 10 min at most, 0 s more");
}

class WorkerLoop : public ::testing::Test {
 protected:
  LoopOptions options() const { return {.name = "me", .groups = {group_}, .stop_wanted = stop_}; }
  ToySource source() { return ToySource(*store_, group_, "me"); }

  convoy::testing::TemporaryFolder folder_;
  std::string path_ = (folder_ / "store.db").string();
  std::unique_ptr<jobs::JobStore> store_ = jobs::open_store(path_);
  int64_t group_ = add_toy_tasks(*store_, 20);
  std::function<bool()> stop_;
};

TEST_F(WorkerLoop, EndsWhenNoTaskIsOpen) {
  ToySource work = source();
  run_loop(options(), work, *store_);
  EXPECT_EQ(work.num_counted, 20);
  EXPECT_EQ(work.num_idle, 1);
  EXPECT_TRUE(work.ended);
  EXPECT_EQ(count_squares(*store_, group_), 20);
}

TEST_F(WorkerLoop, WaitsForTasksOfOtherOwners) {
  const auto theirs =
      store_->claim({.group = group_, .owner = "other", .max_ranges = 20, .lease = 60s});
  ASSERT_EQ(theirs.size(), 20u);
  ToySource work = source();
  stop_ = [&] {
    if (work.num_idle == 2) store_->release("other");
    return false;
  };
  run_loop(options(), work, *store_);
  EXPECT_GE(work.num_idle, 3);
  EXPECT_EQ(work.num_counted, 20);
}

TEST_F(WorkerLoop, AStoppedWorkerHandsInWhatItHasAndOwnsNothing) {
  ToySource work = source();
  stop_ = [&] { return work.num_counted == 3; };
  work.begin = [&](const jobs::Lease&) {
    if (work.num_counted == 2)
      store_->claim({.group = group_, .owner = "me", .max_ranges = 5, .lease = 60s});
  };
  run_loop(options(), work, *store_);
  EXPECT_TRUE(work.ended);
  EXPECT_EQ(count_squares(*store_, group_), 3);
  EXPECT_TRUE(store_->leases(group_).empty());
}

TEST_F(WorkerLoop, RenewsWhatIsHeldAndLosesWhatAnotherOwnerTook) {
  const auto other = jobs::open_store(path_);
  ToySource work = source();
  work.lease = 1ms;
  work.unfinished = true;
  int64_t num_begun = 0;
  work.begin = [&](const jobs::Lease& lease) {
    ++num_begun;
    // The first turn of the loop renewed no lease, so the lease expires and another owner takes the
    // task.
    if (num_begun == 1) {
      std::this_thread::sleep_for(20ms);
      ASSERT_EQ(other->claim({.group = group_, .owner = "other", .lease = 60s}).at(0).task,
                lease.task);
      work.lease = 60s;
    }
    // The sleep is a quarter of the loop's lease, so the second lease is renewed before the third
    // turn.
    if (num_begun == 2) std::this_thread::sleep_for(30ms);
    if (num_begun == 3) {
      EXPECT_EQ(work.num_lost, 1);
      for (const jobs::Lease& now : store_->leases(group_))
        EXPECT_TRUE(now.owner != "me" || now.expires_ms != lease.expires_ms);
    }
  };
  stop_ = [&] { return num_begun == 3; };
  LoopOptions often = options();
  often.lease = 100ms;
  run_loop(often, work, *store_);
  EXPECT_EQ(work.num_lost, 1);
}

TEST_F(WorkerLoop, AServerThatComesBackCostsNothing) {
  int outages = 0, num_asked = 0;
  jobs::StoreOptions server{.server_limit = kServerLimit};
  server.keep_waiting = [&](std::chrono::milliseconds left) {
    EXPECT_LE(left, kServerLimit);
    ++num_asked;
    return true;
  };
  const auto store = open_leaving_server(path_, outages, server);
  ToySource work(*store, group_, "me");
  work.begin = [&](const jobs::Lease&) { outages = work.num_counted % 10 == 5 ? 2 : 0; };
  run_loop(options(), work, *store);
  EXPECT_EQ(num_asked, 4);
  EXPECT_EQ(work.num_counted, 20);
  EXPECT_EQ(count_squares(*store_, group_), 20);
}

TEST_F(WorkerLoop, AServerThatStaysAwayEndsIt) {
  int outages = 0;
  jobs::StoreOptions server{.server_limit = kServerLimit};
  server.keep_waiting = [](auto) { return false; };
  const auto store = open_leaving_server(path_, outages, server);
  ToySource work(*store, group_, "me");
  work.begin = [&](const jobs::Lease&) { outages = 1'000; };
  EXPECT_THROW(run_loop(options(), work, *store), IoError);
  EXPECT_EQ(count_squares(*store_, group_), 0);
}

}  // namespace
}  // namespace convoy::workers
