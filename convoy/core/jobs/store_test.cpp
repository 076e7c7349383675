// SPDX-License-Identifier: Apache-2.0
//
// Tests that every kind of job store must pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/job_store.h"
#include "jobs/store_under_test.h"

namespace convoy::jobs {
namespace {

using convoy::testing::StoreUnderTest;
using namespace std::chrono_literals;

class EachStore : public ::testing::TestWithParam<std::string> {
 protected:
  EachStore() : under_test_(GetParam()), store_(under_test_.open()) {
    group_ = store_->register_group("sweep", "ssm", "1").group.number;
  }

  void add(int count, int64_t units = 1, int64_t priority = 0) {
    std::vector<NewTask> tasks;
    for (int index = 0; index < count; ++index)
      tasks.push_back({.parameters = R"({"seed":)" + std::to_string(added_++) + "}",
                       .units = units,
                       .priority = priority});
    ASSERT_EQ(store_->add(group_, tasks), count);
  }
  std::vector<Lease> claim(int64_t max_ranges, int64_t units = 1,
                           std::chrono::milliseconds lease = 60s, const std::string& owner = "w1",
                           int max_attempts = 0) {
    return store_->claim({.group = group_,
                          .owner = owner,
                          .max_ranges = max_ranges,
                          .units_per_range = units,
                          .lease = lease,
                          .max_attempts = max_attempts});
  }
  Receipt complete(const Lease& lease, const std::string& payload = "1",
                   std::optional<int64_t> count = {}) {
    const Completion completion{.lease = lease, .payload = payload, .count = count, .result = {}};
    return store_->complete({&completion, 1}, sum_).at(0);
  }
  FailOutcome fail(const Lease& lease, int max_attempts) {
    const RangeFailure failure{.lease = lease,
                               .failure = {.kind = "crash", .message = "it fell", .signal = 11}};
    return store_->fail({&failure, 1}, max_attempts).at(0);
  }
  bool finish(int64_t task, const std::string& payload) {
    const Finish finish{.task = task, .result = {.payload = payload}};
    return store_->finish({&finish, 1}).at(0);
  }
  TaskRecord task_at(size_t place) { return tasks().at(place); }
  std::vector<TaskRecord> tasks() {
    std::vector<TaskRecord> all;
    store_->for_each_task(group_, [&](const TaskRecord& task) { all.push_back(task); });
    size_t ahead = 0;
    store_->for_each_task_ahead(
        group_, [&](const TaskRecord& task) { EXPECT_EQ(task.id, all.at(ahead++).id); });
    EXPECT_EQ(ahead, all.size());
    return all;
  }

  const Merge sum_ = [](const std::string& left, const std::string& right) {
    return std::to_string(std::stoll(left) + std::stoll(right));
  };
  StoreUnderTest under_test_;
  std::unique_ptr<JobStore> store_;
  int64_t group_ = 0;
  int added_ = 0;
};

TEST_P(EachStore, AddsATaskOnceAndKeepsTheOrder) {
  add(3);
  const std::vector<NewTask> again = {{.parameters = R"({"seed":1})"},
                                      {.parameters = R"({"seed":7})"},
                                      {.parameters = R"({"seed":7})"},
                                      {.parameters = R"({"seed":1})", .units = 2}};
  EXPECT_EQ(store_->add(group_, again), 2);
  EXPECT_EQ(store_->add(group_, again), 0);
  const std::vector<TaskRecord> all = tasks();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1].parameters, R"({"seed":1})");
  EXPECT_EQ(all[1].id, task_id("ssm", "1", R"({"seed":1})", 1));
  EXPECT_EQ(all[3].parameters, R"({"seed":7})");
  EXPECT_EQ(all[4].units, 2);
  EXPECT_EQ(store_->counts(group_).open, 5);
}

TEST_P(EachStore, AddsManyAndLooksFewUpInThem) {
  add(3000);
  const std::vector<NewTask> few = {{.parameters = R"({"seed":2999})"}, {.parameters = "{}"}};
  EXPECT_EQ(store_->add(group_, few), 1);
  EXPECT_EQ(store_->counts(group_).open, 3001);
  EXPECT_EQ(tasks().size(), 3001u);
}

TEST_P(EachStore, KeepsVersionsApart) {
  add(2);
  const GroupRegistration same = store_->register_group("sweep", "ssm", "1");
  EXPECT_EQ(same.group.number, group_);
  EXPECT_TRUE(same.others.empty());
  const GroupRegistration newer = store_->register_group("sweep", "ssm", "2");
  EXPECT_NE(newer.group.number, group_);
  ASSERT_EQ(newer.others.size(), 1u);
  EXPECT_EQ(newer.others[0].version, "1");
  EXPECT_EQ(store_->counts(newer.group.number).open, 0);
  EXPECT_TRUE(store_->claim({.group = newer.group.number, .owner = "w"}).empty());
  EXPECT_EQ(store_->groups().size(), 2u);
}

TEST_P(EachStore, KnowsWhenAGroupWasMadeAndLastRegistered) {
  const Group made = store_->groups().at(0);
  EXPECT_GT(made.created_ms, 1'000'000'000'000);
  EXPECT_EQ(made.created_ms, made.last_run_ms);
  std::this_thread::sleep_for(5ms);
  const Group again = store_->register_group("sweep", "ssm", "1").group;
  EXPECT_EQ(again.created_ms, made.created_ms);
  EXPECT_GT(again.last_run_ms, made.last_run_ms);
  EXPECT_EQ(store_->groups().at(0).last_run_ms, again.last_run_ms);
}

TEST_P(EachStore, ClaimsByPriorityThenOrder) {
  add(2, 1, 1);
  add(2, 1, 5);
  std::vector<std::string> order;
  for (const Lease& lease : claim(10)) order.push_back(lease.parameters);
  EXPECT_EQ(order, (std::vector<std::string>{R"({"seed":2})", R"({"seed":3})", R"({"seed":0})",
                                             R"({"seed":1})"}));
  EXPECT_TRUE(claim(10).empty());
}

TEST_P(EachStore, SplitsATaskAndCoalescesItsFinishedRanges) {
  add(1, 1000);
  const std::vector<Lease> leases = claim(7, 100);
  ASSERT_EQ(leases.size(), 7u);
  EXPECT_EQ(leases[6].first, 600);
  EXPECT_EQ(leases[6].count, 100);
  EXPECT_EQ(leases[6].task_units, 1000);
  const int64_t task = leases[0].task;
  for (const size_t index : {2u, 0u, 5u}) EXPECT_TRUE(complete(leases[index], "100").counted);
  EXPECT_EQ(store_->progress(task).size(), 3u);
  EXPECT_EQ(complete(leases[1], "100").units_done, 400);
  const std::vector<Part> parts = store_->progress(task);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].first, 0);
  EXPECT_EQ(parts[0].count, 300);
  EXPECT_EQ(parts[0].payload, "300");
  std::vector<Completion> rest;
  for (const size_t index : {6u, 3u, 4u})
    rest.push_back({.lease = leases[index], .payload = "100", .result = {}});
  EXPECT_EQ(store_->complete(rest, sum_)[0].units_done, 700);
  ASSERT_EQ(store_->progress(task).size(), 1u);
  EXPECT_EQ(store_->progress(task)[0].payload, "700");
  for (const Lease& lease : claim(100, 100)) complete(lease, "100");
  const std::vector<TaskRecord> complete = store_->unfinished_complete(group_);
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(complete[0].units_done, 1000);
  EXPECT_TRUE(finish(task, store_->progress(task).at(0).payload));
  EXPECT_FALSE(finish(task, "another"));
  EXPECT_TRUE(store_->progress(task).empty());
  EXPECT_TRUE(store_->unfinished_complete(group_).empty());
  EXPECT_EQ(tasks()[0].result->payload, "1000");
  EXPECT_EQ(store_->counts(group_).done, 1);
}

TEST_P(EachStore, WithoutAMergeKeepsEachRange) {
  add(1, 4);
  std::vector<Completion> all;
  for (const Lease& lease : claim(4, 1))
    all.push_back({.lease = lease, .payload = std::to_string(lease.first), .result = {}});
  store_->complete(all, {});
  EXPECT_EQ(store_->progress(all[0].lease.task).size(), 4u);
}

TEST_P(EachStore, ASimpleTaskIsFinishedWithItsRange) {
  add(20);
  std::vector<Completion> all;
  for (const Lease& lease : claim(20))
    all.push_back({.lease = lease, .payload = "", .result = Result{.payload = lease.parameters}});
  for (const Receipt& receipt : store_->complete(all, {})) EXPECT_TRUE(receipt.counted);
  for (const Receipt& receipt : store_->complete(all, {})) EXPECT_FALSE(receipt.counted);
  EXPECT_EQ(store_->counts(group_).done, 20);
  for (const TaskRecord& task : tasks()) EXPECT_EQ(task.result->payload, task.parameters);
  EXPECT_TRUE(claim(1).empty());
}

TEST_P(EachStore, AnExpiredLeaseIsTakenOverAndCountsOnce) {
  add(1, 10);
  const Lease old = claim(1, 10, 0ms).at(0);
  const std::vector<Lease> pieces = claim(2, 4, 60s, "w2");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].attempt, 2);
  EXPECT_EQ(pieces[1].first, 4);
  EXPECT_FALSE(complete(old, "10").counted);
  EXPECT_EQ(complete(pieces[0], "4").units_done, 4);
  EXPECT_FALSE(complete(pieces[0], "4").counted);
  const Lease rest = claim(5, 4).at(0);
  EXPECT_EQ(rest.first, 8);
  EXPECT_EQ(rest.count, 2);
  EXPECT_TRUE(claim(5, 4).empty());
  complete(rest, "2");
  EXPECT_EQ(complete(pieces[1], "4").units_done, 10);
  EXPECT_EQ(store_->progress(old.task).at(0).payload, "10");
}

TEST_P(EachStore, AnExpiredLeaseNobodyTookStillCounts) {
  add(1);
  EXPECT_TRUE(complete(claim(1, 1, 0ms).at(0)).counted);
}

TEST_P(EachStore, RenewsOnlyWhatStillHolds) {
  add(2);
  std::vector<Lease> leases = claim(2, 1, 0ms);
  const Lease taken = claim(1, 1, 60s, "w2").at(0);
  ASSERT_EQ(taken.task, leases[0].task);
  EXPECT_EQ(store_->renew(leases, 60s), (std::vector<bool>{false, true}));
  EXPECT_GT(leases[1].expires_ms, leases[0].expires_ms);
  EXPECT_TRUE(claim(1).empty());
  EXPECT_TRUE(complete(leases[1]).counted);
}

TEST_P(EachStore, AFailedRangeIsTriedAgainAndThenFailsItsTask) {
  add(1, 10);
  const std::vector<Lease> leases = claim(2, 5);
  complete(leases[0], "5");
  EXPECT_EQ(fail(leases[1], 2), FailOutcome::Retry);
  EXPECT_EQ(fail(leases[1], 2), FailOutcome::NotCounted);
  const Lease again = claim(1, 5).at(0);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_EQ(fail(again, 2), FailOutcome::TaskFailed);
  EXPECT_TRUE(claim(1, 5).empty());
  EXPECT_EQ(store_->counts(group_).failed, 1);
  const Failure failure = tasks().at(0).result->failure;
  EXPECT_EQ(failure.kind, "crash");
  EXPECT_EQ(failure.signal, 11);
  EXPECT_EQ(failure.attempt, 2);
  EXPECT_EQ(store_->reopen_failed(group_), 1);
  EXPECT_FALSE(tasks().at(0).result.has_value());
  const Lease anew = claim(1, 5).at(0);
  EXPECT_EQ(anew.attempt, 1);
  EXPECT_EQ(anew.first, 5);
  EXPECT_EQ(complete(anew, "5").units_done, 10);
}

TEST_P(EachStore, ALeaseBesideAFailureCountsButIsNotRenewed) {
  add(1, 10);
  std::vector<Lease> leases = claim(2, 5);
  EXPECT_EQ(fail(leases[0], 1), FailOutcome::TaskFailed);
  EXPECT_EQ(store_->renew({&leases[1], 1}, 60s), std::vector<bool>{false});
  EXPECT_TRUE(complete(leases[1], "5").counted);
  store_->reopen_failed(group_);
  EXPECT_EQ(claim(5, 5).size(), 1u);
}

TEST_P(EachStore, ATaskThatFailedAsAWholeStartsAnew) {
  add(1);
  const Completion completion{
      .lease = claim(1).at(0),
      .payload = "x",
      .result = Result{.kind = ResultKind::Failed, .failure = {.kind = "nan"}}};
  store_->complete({&completion, 1}, {});
  EXPECT_EQ(store_->counts(group_).failed, 1);
  store_->reopen_failed(group_);
  EXPECT_EQ(claim(1).size(), 1u);
}

TEST_P(EachStore, ARangeThatOutlivesItsWorkersFails) {
  add(1);
  for (int attempt = 1; attempt <= 3; ++attempt)
    EXPECT_EQ(claim(1, 1, 0ms, "w", 3).at(0).attempt, attempt);
  EXPECT_TRUE(claim(1, 1, 0ms, "w", 3).empty());
  EXPECT_EQ(tasks().at(0).result->failure.kind, "lost");
}

TEST_P(EachStore, ReleasedLeasesAreOpenAtOnceAndCostNoAttempt) {
  add(3);
  const std::vector<Lease> leases = claim(2);
  const Lease other = claim(1, 1, 60s, "w2").at(0);
  EXPECT_EQ(store_->leases(group_).size(), 3u);
  EXPECT_EQ(store_->release("w1"), 2);
  ASSERT_EQ(store_->leases(group_).size(), 1u);
  EXPECT_EQ(store_->leases(group_)[0].number, other.number);
  const std::vector<Lease> again = claim(5, 1, 60s, "w3");
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].attempt, 1);
  EXPECT_FALSE(complete(leases[0]).counted);
}

TEST_P(EachStore, PartOfARangeCountsAndTheRestIsOpen) {
  add(1, 10);
  EXPECT_EQ(complete(claim(1, 10).at(0), "3", 3).units_done, 3);
  const Lease rest = claim(1, 10).at(0);
  EXPECT_EQ(rest.first, 3);
  EXPECT_EQ(rest.count, 7);
  EXPECT_EQ(rest.attempt, 1);
}

TEST_P(EachStore, FinishedEarlyNothingElseCounts) {
  add(1, 100);
  const std::vector<Lease> leases = claim(3, 10);
  complete(leases[0], "10");
  EXPECT_TRUE(finish(leases[0].task, "early"));
  EXPECT_FALSE(complete(leases[1], "10").counted);
  std::vector<Lease> rest = {leases[2]};
  EXPECT_EQ(store_->renew(rest, 60s), std::vector<bool>{false});
  EXPECT_TRUE(claim(10, 10).empty());
  EXPECT_EQ(tasks()[0].result->payload, "early");
}

TEST_P(EachStore, KeepsAnyBytesAndCensoredResults) {
  add(2);
  const std::vector<Lease> leases = claim(2);
  const std::string bytes("\0\xff\x80 tail", 8);
  std::vector<Finish> results = {
      {.task = leases[0].task, .result = {.kind = ResultKind::Censored, .payload = bytes}},
      {.task = leases[1].task,
       .result = {.kind = ResultKind::Failed,
                  .failure = {.kind = "exit", .exit_code = 3, .stderr_tail = bytes}}}};
  store_->finish(results);
  store_ = under_test_.open();
  EXPECT_EQ(tasks()[0].result->kind, ResultKind::Censored);
  EXPECT_EQ(tasks()[0].result->payload, bytes);
  EXPECT_EQ(tasks()[1].result->failure.exit_code, 3);
  EXPECT_NE(tasks()[1].result->failure.stderr_tail.find(" tail"), std::string::npos);
}

TEST_P(EachStore, AResultIsPutAsideUntilThereIsANewOne) {
  add(2, 3);
  EXPECT_TRUE(store_->former_results(group_).empty());
  ASSERT_TRUE(finish(1, "old"));
  ASSERT_TRUE(finish(2, "stays"));
  const int64_t finished_ms = task_at(0).finished_ms;
  EXPECT_GT(finished_ms, 1'600'000'000'000);
  const std::vector<int64_t> both = {1, 3};  // task 3 does not exist
  EXPECT_EQ(store_->redo(both), 1);
  EXPECT_EQ(store_->redo(both), 0);  // task 1 is open already
  EXPECT_EQ(task_at(0).state, TaskState::Open);
  EXPECT_EQ(task_at(0).finished_ms, 0);
  EXPECT_EQ(task_at(1).result->payload, "stays");
  std::vector<FormerResult> former = store_->former_results(group_);
  ASSERT_EQ(former.size(), 1u);
  EXPECT_EQ(former[0].task, 1);
  EXPECT_EQ(former[0].result.payload, "old");
  EXPECT_EQ(former[0].finished_ms, finished_ms);
  EXPECT_GE(former[0].replaced_ms, finished_ms);
  // All units of the task can be claimed again.
  const std::vector<Lease> leases = claim(5, 3);
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].count, 3);
  complete(leases[0], "3");
  ASSERT_TRUE(finish(1, "new"));
  EXPECT_EQ(task_at(0).result->payload, "new");
  EXPECT_EQ(store_->former_results(group_).size(), 1u);
  const std::vector<int64_t> first = {1};
  EXPECT_EQ(store_->redo(first), 1);
  former = under_test_.open()->former_results(group_);
  ASSERT_EQ(former.size(), 2u);
  EXPECT_EQ(former[1].result.payload, "new");
}

TEST_P(EachStore, AFailureIsPutAsideToo) {
  add(1, 2);
  const std::vector<Lease> leases = claim(1, 1);
  ASSERT_EQ(fail(leases.at(0), 1), FailOutcome::TaskFailed);
  EXPECT_GT(task_at(0).finished_ms, 0);
  const std::vector<int64_t> first = {1};
  EXPECT_EQ(store_->redo(first), 1);
  const std::vector<FormerResult> former = store_->former_results(group_);
  ASSERT_EQ(former.size(), 1u);
  EXPECT_EQ(former[0].result.kind, ResultKind::Failed);
  EXPECT_EQ(former[0].result.failure.message, "it fell");
  EXPECT_EQ(claim(5, 2).size(), 1u);
}

TEST_P(EachStore, AResultTakenOverKeepsItsTime) {
  add(1);
  const Finish taken{.task = 1, .result = {.payload = "1"}, .finished_ms = 1'700'000'000'000};
  ASSERT_TRUE(store_->finish({&taken, 1}).at(0));
  EXPECT_EQ(task_at(0).finished_ms, 1'700'000'000'000);
}

TEST_P(EachStore, TwoCoordinatorsDoubleNothing) {
  add(1, 4000);
  add(200);
  std::atomic<int64_t> counted = 0;
  const auto work = [&](const std::string& owner) {
    const std::unique_ptr<JobStore> own = under_test_.open();
    for (;;) {
      const std::vector<Lease> leases =
          own->claim({.group = group_, .owner = owner, .max_ranges = 9, .units_per_range = 37});
      if (leases.empty()) return;
      std::vector<Completion> done;
      for (const Lease& lease : leases)
        done.push_back({.lease = lease, .payload = std::to_string(lease.count), .result = {}});
      for (const Receipt& receipt : own->complete(done, sum_)) counted += receipt.counted ? 1 : 0;
    }
  };
  std::thread first(work, "a");
  std::thread second(work, "b");
  first.join();
  second.join();
  EXPECT_EQ(counted, (4000 + 36) / 37 + 200);
  const std::vector<TaskRecord> all = store_->unfinished_complete(group_);
  ASSERT_EQ(all.size(), 201u);
  for (const TaskRecord& task : all) {
    const std::vector<Part> parts = store_->progress(task.number);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].payload, std::to_string(task.units));
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, EachStore, ::testing::ValuesIn(StoreUnderTest::kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(Tasks, AnIdentityIsContentNotPosition) {
  EXPECT_EQ(canonical_parameters(R"({ "b": 1, "a": [1.5, "x"] })"), R"({"a":[1.5,"x"],"b":1})");
  EXPECT_THROW(canonical_parameters("[1]"), ConfigError);
  EXPECT_THROW(canonical_parameters("{"), ConfigError);
  const std::string id = task_id("ssm", "1", "{}", 1);
  EXPECT_EQ(id.size(), 64u);
  EXPECT_NE(id, task_id("ssm1", "", "{}", 1));
  EXPECT_NE(id, task_id("ssm", "2", "{}", 1));
  EXPECT_NE(id, task_id("ssm", "1", "{}", 2));
}

}  // namespace
}  // namespace convoy::jobs
