// SPDX-License-Identifier: Apache-2.0
//
// Recovers damaged stores: no result changes, and every unit without a result can be computed
// again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/jobs/postgres/postgres_session.h"
#include "convoy/core/jobs/recover_store.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"
#include "files/temporary_folder.h"
#include "jobs/store_under_test.h"

namespace convoy::jobs {
namespace {

namespace fs = std::filesystem;
using convoy::testing::StoreUnderTest;
using convoy::testing::TemporaryFolder;

constexpr int64_t kUnits = 5;
constexpr int kTasks = 120;

// Most tasks have a result; some are half done, one failed, one has a former result.
void fill(JobStore& store, const std::string& name = "sweep/run") {
  const int64_t group = store.register_group(name, "run", "1").group.number;
  std::vector<NewTask> tasks;
  for (int index = 0; index < kTasks; ++index)
    tasks.push_back({.parameters = R"({"seed":)" + std::to_string(index) + "}", .units = kUnits});
  store.add(group, tasks);
  const auto claim = [&](int64_t ranges, int64_t units) {
    return store.claim(
        {.group = group, .owner = "w", .max_ranges = ranges, .units_per_range = units});
  };
  std::vector<Completion> done;
  for (const Lease& lease : claim(kTasks - 10, kUnits))
    done.push_back({.lease = lease,
                    .payload = "part",
                    .result = Result{.payload = "result of " + lease.parameters}});
  store.complete(done, {});
  const std::vector<Lease> halves = claim(8, 2);
  for (const size_t index : {0, 2, 3, 5}) {
    const Completion half{.lease = halves.at(index), .payload = "half", .result = {}};
    store.complete({&half, 1}, {});
  }
  const RangeFailure failure{.lease = halves.at(6), .failure = {.kind = "exit", .message = "3"}};
  store.fail({&failure, 1}, 1);
  const std::vector<int64_t> first = {1};
  store.redo(first);
}

// Returns the result of each task by the task's parameters. Fails if the units of a task are not
// all there exactly once.
std::map<std::string, std::string> results_of(const std::string& url) {
  const auto store = open_store(url);
  std::map<std::string, std::string> results;
  for (const Group& group : store->groups()) {
    EXPECT_EQ(group.problem, "");
    std::vector<TaskRecord> open;
    store->for_each_task(group.number, [&](const TaskRecord& task) {
      if (task.result)
        results[task.parameters] = task.result->payload + task.result->failure.message;
      else
        open.push_back(task);
    });
    store->release("w");
    std::map<int64_t, int64_t> units;
    for (const Lease& lease : store->claim({.group = group.number,
                              .owner = "x",
                              .max_ranges = 10'000,
                              .units_per_range = kUnits}))
      units[lease.task] += lease.count;
    for (const TaskRecord& task : open) {
      for (const Part& part : store->progress(task.number)) units[task.number] += part.count;
      EXPECT_EQ(units[task.number], kUnits) << task.parameters;
    }
  }
  return results;
}

void expect_part_of(const std::map<std::string, std::string>& some,
                    const std::map<std::string, std::string>& all) {
  for (const auto& [parameters, result] : some) {
    const auto found = all.find(parameters);
    ASSERT_NE(found, all.end()) << parameters;
    EXPECT_EQ(result, found->second);
  }
}

class RecoverSqlite : public ::testing::Test {
 protected:
  RecoverSqlite() {
    fill(*open_store(path_));
    good_ = read_file(path_);
    const TemporaryFolder other;
    const std::string copy = other / "copy.db";
    write(copy, good_);
    results_ = results_of(copy);
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  void damage(const std::string& bytes) {
    for (const char* const suffix : {"-wal", "-shm"}) fs::remove(path_ + suffix);
    write(path_, bytes);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "store.db";
  std::string good_;
  std::map<std::string, std::string> results_;
};

TEST_F(RecoverSqlite, OneDamagedResultCostsThatResult) {
  std::string bad = good_;
  const size_t at = bad.find(R"(result of {"seed":17})");
  ASSERT_NE(at, std::string::npos);
  bad[at] = 'R';
  damage(bad);
  try {
    open_store(path_);
    ADD_FAILURE() << "a damaged store was opened";
  } catch (const DataError& error) {
    EXPECT_NE(error.location().hint.find("convoy sweep recover --store '" + path_ + "'"),
              std::string::npos)
        << error.location().hint;
  }
  const Recovery recovery = recover_store(path_);
  EXPECT_FALSE(recovery.was_sound);
  EXPECT_EQ(recovery.tasks, kTasks);
  EXPECT_EQ(recovery.reopened, 1);
  EXPECT_EQ(recovery.dropped_rows, 1);
  EXPECT_EQ(read_file(recovery.kept_aside), bad);
  std::map<std::string, std::string> wanted = results_;
  EXPECT_EQ(wanted.erase(R"({"seed":17})"), 1u);
  EXPECT_EQ(open_store(path_)->former_results(1).size(), 1u);
  EXPECT_EQ(results_of(path_), wanted);
  EXPECT_TRUE(recover_store(path_).was_sound);
  int num_files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path())) ++num_files;
  EXPECT_EQ(num_files, 2);
}

TEST_F(RecoverSqlite, WhateverByteIsFlippedNothingElseIsLost) {
  for (size_t at = 0; at < good_.size(); at += at < 100 ? 9 : 1'013) {
    std::string bad = good_;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    damage(bad);
    Recovery recovery;
    ASSERT_NO_THROW(recovery = recover_store(path_)) << "byte " << at;
    const std::map<std::string, std::string> left = results_of(path_);
    expect_part_of(left, results_);
    // A damaged page costs its rows: a page of SQLite holds about forty rows of this store.
    EXPECT_GE(left.size() + 60, results_.size()) << "byte " << at;
    if (!recovery.kept_aside.empty()) fs::remove(recovery.kept_aside);
  }
}

TEST_F(RecoverSqlite, PagesThatAreGoneCostWhatWasOnThem) {
  constexpr size_t kPage = 4096;
  size_t num_kept = 0;
  for (size_t page = 0; page < good_.size() / kPage; ++page) {
    std::string bad = good_;
    bad.replace(page * kPage, kPage, kPage, '\x5a');
    damage(bad);
    Recovery recovery;
    ASSERT_NO_THROW(recovery = recover_store(path_)) << "page " << page;
    const std::map<std::string, std::string> left = results_of(path_);
    expect_part_of(left, results_);
    num_kept += left.size() == results_.size() ? 1 : 0;
    if (!recovery.kept_aside.empty()) fs::remove(recovery.kept_aside);
  }
  // The loss of index pages costs no result, nor that of the first page, which lists the tables.
  EXPECT_GT(num_kept, 5u);
}

TEST_F(RecoverSqlite, ADamagedNameKeepsItsResultsUnderAnother) {
  SqliteSession(path_, {}).run("UPDATE convoy_groups SET name = 'weep/run'", {});
  const Recovery recovery = recover_store(path_);
  EXPECT_EQ(recovery.renamed_groups, 1);
  EXPECT_EQ(open_store(path_)->groups().at(0).name, "recovered-1/run");
  EXPECT_EQ(results_of(path_), results_);
}

TEST_F(RecoverSqlite, LeavesAloneWhatOthersUseAndWhatIsNoStore) {
  std::string bad = good_;
  bad[bad.find("result of")] = 'R';
  damage(bad);
  {
    const auto other = open_store(path_, {.access = Access::ReadOnly});
    other->counts(1);
    EXPECT_THROW(recover_store(path_, {.busy_limit = std::chrono::milliseconds(100)}), IoError);
  }
  EXPECT_EQ(read_file(path_), bad);
  damage(std::string(20'000, 'x'));
  EXPECT_THROW(recover_store(path_), DataError);
  EXPECT_EQ(read_file(path_), std::string(20'000, 'x'));
  EXPECT_THROW(recover_store(folder_ / "none.db"), DataError);
  EXPECT_FALSE(fs::exists(folder_ / "none.db"));
}

class RecoverEachStore : public ::testing::TestWithParam<std::string> {};

TEST_P(RecoverEachStore, DamagedRowsAreDroppedAndComputedAgain) {
  const StoreUnderTest under_test(GetParam());
  fill(*under_test.open());
  const auto run = [&](const std::string& sql) {
    if (GetParam() == "postgres")
      PostgresSession(under_test.url(), under_test.options()).run(sql, {});
    else
      SqliteSession(under_test.url(), under_test.options()).run(sql, {});
  };
  run("UPDATE convoy_results SET crc = crc + 1 WHERE task = 7");
  run("UPDATE convoy_tasks SET priority = 5 WHERE number = 9");
  run("UPDATE convoy_parts SET count = count + 1 WHERE task = 111");
  run("DELETE FROM convoy_ranges WHERE task = 112");
  run("UPDATE convoy_meta SET value = '1 2 3' WHERE key = 'group_times_1'");
  const Recovery recovery = recover_store(under_test.url(), under_test.options());
  EXPECT_FALSE(recovery.was_sound);
  EXPECT_EQ(recovery.tasks, kTasks - 1);
  EXPECT_EQ(recovery.dropped_rows, 4);  // two of the four rows are parts of task 111
  EXPECT_EQ(recovery.kept_aside.empty(), GetParam() == "postgres");
  const std::map<std::string, std::string> left = results_of(under_test.url());
  EXPECT_EQ(left.size(), static_cast<size_t>(recovery.results));
  EXPECT_FALSE(left.contains(R"({"seed":6})"));
  EXPECT_FALSE(left.contains(R"({"seed":8})"));
  EXPECT_TRUE(left.contains(R"({"seed":9})"));
  EXPECT_TRUE(recover_store(under_test.url(), under_test.options()).was_sound);
}

INSTANTIATE_TEST_SUITE_P(Stores, RecoverEachStore, ::testing::ValuesIn(StoreUnderTest::kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace convoy::jobs
