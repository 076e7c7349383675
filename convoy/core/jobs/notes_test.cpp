// SPDX-License-Identifier: Apache-2.0
//
// Tests the notes of tasks in every job store.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/postgres/postgres_session.h"
#include "convoy/core/jobs/recover_store.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"
#include "jobs/store_under_test.h"

namespace convoy::jobs {
namespace {

using convoy::testing::StoreUnderTest;
using namespace std::chrono_literals;

class EachStoreNotes : public ::testing::TestWithParam<std::string> {
 protected:
  EachStoreNotes() : under_test_(GetParam()), store_(under_test_.open()) {
    group_ = store_->register_group("rows", "process", "1").group.number;
  }

  void add(int count) {
    std::vector<NewTask> tasks;
    for (int index = 0; index < count; ++index)
      tasks.push_back({.parameters = R"({"row":)" + std::to_string(index) + "}"});
    ASSERT_EQ(store_->add(group_, tasks), count);
  }
  std::vector<Lease> claim(int64_t count, const std::string& owner,
                           std::chrono::milliseconds lease = 60s) {
    return store_->claim({.group = group_, .owner = owner, .max_ranges = count, .lease = lease});
  }
  HandedIn keep(const std::vector<NewNote>& notes, const std::vector<Completion>& done = {}) {
    return store_->hand_in(notes, done, {});
  }
  std::string keys_of(const std::vector<Lease>& leases) {
    std::vector<int64_t> tasks;
    for (const Lease& lease : leases) tasks.push_back(lease.task);
    std::string keys;
    for (const Note& note : store_->notes(tasks)) keys += note.key + "=" + note.payload + " ";
    return keys;
  }

  StoreUnderTest under_test_;
  std::unique_ptr<JobStore> store_;
  int64_t group_ = 0;
};

TEST_P(EachStoreNotes, FirstPayloadOfAKeyStays) {
  add(2);
  const std::vector<Lease> leases = claim(2, "w1");
  EXPECT_EQ(keys_of(leases), "");
  const HandedIn handed =
      keep({{leases[1], "b", "1"}, {leases[0], "a", "2"}, {leases[1], "a", "3"}});
  EXPECT_EQ(handed.kept, (std::vector<bool>{true, true, true}));
  EXPECT_TRUE(handed.receipts.empty());
  EXPECT_EQ(keep({{leases[0], "a", "other"}}).kept, (std::vector<bool>{true}));
  EXPECT_EQ(keys_of(leases), "a=2 b=1 a=3 ");
  EXPECT_EQ(keys_of({leases[1]}), "b=1 a=3 ");
}

TEST_P(EachStoreNotes, OutliveALeaseAndComeOnlyUnderOneThatHolds) {
  add(1);
  const std::vector<Lease> lost = claim(1, "w1", 1ms);
  ASSERT_EQ(keep({{lost[0], "a", "1"}}).kept, (std::vector<bool>{true}));
  std::this_thread::sleep_for(20ms);
  const std::vector<Lease> taken = claim(1, "w2");
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(keep({{lost[0], "b", "1"}}).kept, (std::vector<bool>{false}));
  EXPECT_EQ(keep({{taken[0], "c", "1"}}).kept, (std::vector<bool>{true}));
  EXPECT_EQ(store_->release("w2"), 1);
  EXPECT_EQ(keep({{taken[0], "d", "1"}}).kept, (std::vector<bool>{false}));
  EXPECT_EQ(keys_of(lost), "a=1 c=1 ");
}

TEST_P(EachStoreNotes, AreDroppedWithTheResult) {
  add(2);
  const std::vector<Lease> leases = claim(2, "w1");
  const HandedIn handed =
      keep({{leases[0], "a", "1"}, {leases[1], "a", "1"}},
           {{.lease = leases[0], .payload = "", .result = Result{.payload = "done"}}});
  EXPECT_TRUE(handed.receipts.at(0).counted);
  EXPECT_EQ(store_->counts(group_).done, 1);
  EXPECT_EQ(keys_of(leases), "a=1 ");
  EXPECT_EQ(keep({{leases[0], "b", "1"}}).kept, (std::vector<bool>{false}));
  const int64_t open_again = leases[0].task;
  EXPECT_EQ(store_->redo({&open_again, 1}), 1);
  EXPECT_EQ(keys_of({leases[0]}), "");
}

TEST_P(EachStoreNotes, SurviveTheirWorkersFailureAndRecovery) {
  add(1);
  const std::vector<Lease> leases = claim(1, "w1");
  ASSERT_EQ(keep({{leases[0], "a", "1"}}).kept, (std::vector<bool>{true}));
  const RangeFailure failure{.lease = leases[0], .failure = {.kind = "crash"}};
  EXPECT_EQ(store_->fail({&failure, 1}, 1).at(0), FailOutcome::TaskFailed);
  EXPECT_EQ(store_->reopen_failed(group_), 1);
  EXPECT_EQ(keys_of(leases), "a=1 ");
  store_.reset();
  EXPECT_TRUE(recover_store(under_test_.url(), under_test_.options()).was_sound);
  store_ = under_test_.open();
  EXPECT_EQ(keys_of(leases), "a=1 ");
}

TEST_P(EachStoreNotes, AnEarlierStoreGetsTheirTable) {
  add(1);
  const std::vector<Lease> leases = claim(1, "w1");
  const std::unique_ptr<JobStore> other = under_test_.open();
  EXPECT_TRUE(other->notes(std::vector<int64_t>{leases[0].task}).empty());
  ASSERT_EQ(keep({{leases[0], "a", "1"}}).kept, (std::vector<bool>{true}));
  EXPECT_EQ(other->notes(std::vector<int64_t>{leases[0].task}).size(), 1u);
}

TEST_P(EachStoreNotes, ManyWriteTheFirstOneAtOnce) {
  constexpr int kWriters = 6;
  add(kWriters);
  std::vector<std::unique_ptr<JobStore>> stores;
  for (int writer = 0; writer < kWriters; ++writer) {
    stores.push_back(under_test_.open());
    // A worker's first request may come before the table exists.
    EXPECT_TRUE(stores.back()->notes(std::vector<int64_t>{1}).empty());
  }
  const std::vector<Lease> leases = claim(kWriters, "w");
  std::latch together(kWriters);
  std::vector<std::string> errors(kWriters);
  std::vector<std::thread> threads;
  for (size_t writer = 0; writer < kWriters; ++writer)
    threads.emplace_back([&, writer] {
      const NewNote note{leases[writer], "a", "1"};
      together.arrive_and_wait();
      try {
        stores[writer]->hand_in({&note, 1}, {}, {});
      } catch (const Error& error) {
        errors[writer] = error.sentence();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(kWriters));
  std::string all;
  for (int writer = 0; writer < kWriters; ++writer) all += "a=1 ";
  EXPECT_EQ(keys_of(leases), all);
}

TEST_P(EachStoreNotes, ADamagedOneIsFoundAndDroppedByRecovery) {
  add(1);
  const std::vector<Lease> leases = claim(1, "w1");
  keep({{leases[0], "a", "1"}, {leases[0], "b", "2"}});
  constexpr const char* kDamage = "UPDATE convoy_notes SET key = 'c' WHERE key = 'a'";
  if (GetParam() == "postgres")
    PostgresSession(under_test_.url(), under_test_.options()).run_script(kDamage);
  else
    SqliteSession(under_test_.url(), under_test_.options()).run_script(kDamage);
  EXPECT_THROW(keys_of(leases), DataError);
  store_.reset();
  const Recovery recovery = recover_store(under_test_.url(), under_test_.options());
  EXPECT_FALSE(recovery.was_sound);
  EXPECT_EQ(recovery.dropped_rows, 1);
  store_ = under_test_.open();
  EXPECT_EQ(keys_of(leases), "b=2 ");
}

INSTANTIATE_TEST_SUITE_P(Stores, EachStoreNotes, ::testing::ValuesIn(StoreUnderTest::kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace convoy::jobs
