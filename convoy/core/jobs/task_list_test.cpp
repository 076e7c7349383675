// SPDX-License-Identifier: Apache-2.0
//
// Tests tasks that are added from a list, and the cost of adding a list that the store has already.
#include <gtest/gtest.h>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"
#include "jobs/store_under_test.h"

namespace convoy::jobs {
namespace {

using convoy::testing::StoreUnderTest;

class EachStoreOfLists : public ::testing::TestWithParam<std::string> {
 protected:
  EachStoreOfLists() : under_test_(GetParam()), store_(under_test_.open()) {
    group_ = store_->register_group("sweep", "ssm", "1").group.number;
  }

  // Adds tasks with the seeds from `first` on.
  int64_t add(int64_t count, const std::string& digest, int64_t first = 0) {
    asked_ = 0;
    return store_->add(
        group_, TaskList{.count = count,
                         .task =
                             [&](int64_t index) {
                               ++asked_;
                               return NewTask{.parameters = R"({"seed":)" +
                                                            std::to_string(first + index) + "}"};
                             },
                         .digest = digest});
  }

  StoreUnderTest under_test_;
  std::unique_ptr<JobStore> store_;
  int64_t group_ = 0;
  int64_t asked_ = 0;
};

TEST_P(EachStoreOfLists, AListThatIsThereIsKnownWithoutALookAtItsTasks) {
  EXPECT_EQ(add(3, "one"), 3);
  EXPECT_EQ(asked_, 6);
  EXPECT_EQ(add(3, "one"), 0);
  EXPECT_EQ(asked_, 0);
  store_ = under_test_.open();
  EXPECT_EQ(add(3, "one"), 0);
  EXPECT_EQ(asked_, 0);
}

TEST_P(EachStoreOfLists, AnotherListOrGroupOrNoDigestIsLookedThrough) {
  EXPECT_EQ(add(3, "one"), 3);
  EXPECT_EQ(add(4, "two"), 1);
  EXPECT_EQ(add(3, "one"), 0);
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(add(3, ""), 0);
  EXPECT_EQ(asked_, 3);
  group_ = store_->register_group("sweep", "ssm", "2").group.number;
  EXPECT_EQ(add(3, "one"), 3);
}

TEST_P(EachStoreOfLists, OpenTasksAreCountedAsAmongAllCounts) {
  EXPECT_EQ(store_->count_open(group_, 10), 0);
  add(3, "one");
  EXPECT_EQ(store_->count_open(group_, 10), 3);
  const Lease lease = store_->claim({.group = group_, .owner = "w"}).at(0);
  const Completion done{.lease = lease, .payload = "1", .result = Result{.payload = "1"}};
  store_->complete({&done, 1}, {});
  EXPECT_EQ(store_->count_open(group_, 10), 2);
  EXPECT_EQ(store_->count_open(group_, 1), 1);
  EXPECT_EQ(store_->counts(group_).open, 2);
}

INSTANTIATE_TEST_SUITE_P(Stores, EachStoreOfLists, ::testing::ValuesIn(StoreUnderTest::kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(TaskLists, TasksTakenOutByHandAreAddedAgain) {
  StoreUnderTest under_test("sqlite");
  const TaskList list{
      .count = 3,
      .task =
          [](int64_t index) {
            return NewTask{.parameters = R"({"seed":)" + std::to_string(index) + "}"};
          },
      .digest = "one"};
  auto store = under_test.open();
  const int64_t group = store->register_group("sweep", "ssm", "1").group.number;
  ASSERT_EQ(store->add(group, list), 3);
  store.reset();
  SqliteSession(under_test.url(), {}).run("DELETE FROM convoy_tasks WHERE number = 2", {});
  EXPECT_EQ(under_test.open()->add(group, list), 1);
}

// The build of 2026-11-21, which had no task lists, wrote these ids. Stores of that time must still
// match these tasks.
TEST(TaskIds, AreThoseOfEarlierBuilds) {
  EXPECT_EQ(task_id("run", "1",
                    R"({"cell":{"command":["./noop-answers"],"environment":{},"persistent":true,)"
                    R"("result":"loss","values":{"lr":"0.1"}},"method":"run","seed":1})",
                    1),
            "7ed4a2b4c18920c3170568e1dead052672569456a2bb53e0fd1775379ee8763e");
  EXPECT_EQ(task_id("ssm", "2-exact-layout2",
                    R"({"cell":{"eps_train":1e-05,"num_sequences":1,"sequence_length":5,)"
                    R"("student_dim":4,"teacher_rank":1},"guesses":1000,"method":"gnc","seed":0,)"
                    R"("target_accepted":5})",
                    1000),
            "c3e3f856f40fe8e3498ee8999c9c3ee91ab1fc23d2898a5d5063e89ab8d9c587");
}

}  // namespace
}  // namespace convoy::jobs
