// SPDX-License-Identifier: Apache-2.0
//
// Tests faults of a SQLite store's file and folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/store_tables.h"
#include "convoy/core/jobs/sqlite/file_system.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"
#include "files/temporary_folder.h"

namespace convoy::jobs {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

int64_t group_of(JobStore& store) { return store.register_group("sweep", "ssm", "1").group.number; }

void add_tasks(JobStore& store, int64_t group, int count) {
  std::vector<NewTask> tasks;
  for (int index = 0; index < count; ++index)
    tasks.push_back({.parameters = R"({"seed":)" + std::to_string(index) + "}", .units = 3});
  store.add(group, tasks);
}

// Fills the store with tasks in every state and ranges of every kind.
void fill_until_full(const fs::path& path) {
  const auto store = open_store(path.string());
  const int64_t group = group_of(*store);
  add_tasks(*store, group, 40);
  const std::vector<Lease> leases =
      store->claim({.group = group, .owner = "w", .max_ranges = 60, .units_per_range = 1});
  std::vector<Completion> completions;
  for (size_t index = 0; index < 50; ++index)
    completions.push_back({.lease = leases[index],
                           .payload = "payload of " + std::to_string(index),
                           .result = Result{.payload = "final " + std::to_string(index)}});
  store->complete(completions, {});
  const RangeFailure failure{.lease = leases[55], .failure = {.kind = "crash", .message = "fell"}};
  store->fail({&failure, 1}, 1);
}

// Returns everything that a reader of the store sees, as one text.
std::string content_of(const fs::path& path) {
  const auto store = open_store(path.string());
  std::string text;
  for (const Group& group : store->groups()) {
    text += group.name + group.workload + group.version + "\n";
    store->for_each_task(group.number, [&](const TaskRecord& task) {
      text += task.id + task.parameters + std::to_string(task.units_done);
      if (task.result) text += task.result->payload + task.result->failure.message;
      for (const Part& part : store->progress(task.number))
        text += "," + std::to_string(part.first) + ":" + part.payload;
      text += "\n";
    });
    for (const Lease& lease : store->leases(group.number))
      text += std::to_string(lease.number) + lease.owner + std::to_string(lease.first) + "\n";
    const Counts counts = store->counts(group.number);
    text += std::to_string(counts.open) + " " + std::to_string(counts.done) + "\n";
  }
  return text;
}

ExitCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::Done;
}

TEST(SqliteFaults, EveryFlippedByteIsFoundOrHarmless) {
  const TemporaryFolder folder;
  const fs::path path = folder / "store.db";
  fill_until_full(path);
  const std::string good = read_file(path);
  const std::string content = content_of(path);
  int num_found = 0;
  for (size_t at = 0; at < good.size(); at += at < 200 ? 1 : 61) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    fs::remove(path.string() + "-wal");
    fs::remove(path.string() + "-shm");
    std::ofstream(path, std::ios::binary) << bad;
    try {
      EXPECT_EQ(content_of(path), content) << "byte " << at;
    } catch (const DataError& error) {
      ++num_found;
      EXPECT_EQ(error.location().file, path.string()) << error.sentence();
    } catch (const ConfigError& error) {
      ++num_found;  // the damaged byte is in the version of the schema
    }
  }
  EXPECT_GT(num_found, 150);  // the other bytes that were damaged lie in unused space
}

TEST(SqliteFaults, ADamagedGroupHidesNoOther) {
  for (const char* damage :
       {"UPDATE convoy_groups SET version = 'other' WHERE number = 1",
        "UPDATE convoy_groups SET workload = 7.5 WHERE number = 1",
        "UPDATE convoy_groups SET crc = crc + 1 WHERE number = 1",
        "UPDATE convoy_meta SET value = '1 2 3' WHERE key = 'group_times_1'"}) {
    const TemporaryFolder folder;
    const fs::path path = folder / "store.db";
    fill_until_full(path);
    {
      const auto store = open_store(path.string());
      add_tasks(*store, store->register_group("second", "w", "1").group.number, 5);
    }
    SqliteSession(path, {}).run(damage, {});
    const auto store = open_store(path.string(), {.access = Access::ReadOnly});
    const std::vector<Group> groups = store->groups();
    ASSERT_EQ(groups.size(), 2u) << damage;
    EXPECT_EQ(groups[0].number, 1) << damage;
    EXPECT_NE(groups[0].problem.find("damaged"), std::string::npos) << groups[0].problem;
    EXPECT_EQ(groups[1].name, "second") << damage;
    EXPECT_EQ(groups[1].problem, "") << damage;
    int num_tasks = 0;
    store->for_each_task(groups[1].number, [&](const TaskRecord&) { ++num_tasks; });
    EXPECT_EQ(num_tasks, 5) << damage;
    // Opening the damaged file for writing is refused as well.
    EXPECT_THROW(open_store(path.string()), DataError) << damage;
  }
}

TEST(SqliteFaults, AFlippedPayloadOfALargeStoreIsFoundWhenRead) {
  const TemporaryFolder folder;
  const fs::path path = folder / "store.db";
  {
    const auto store = open_store(path.string());
    const int64_t group = group_of(*store);
    add_tasks(*store, group, 40);
    std::vector<Finish> results;
    for (int64_t task = 1; task <= 40; ++task)
      results.push_back({.task = task, .result = {.payload = std::string(1 << 20, 'x')}});
    store->finish(results);
  }
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  const auto store = open_store(path.string());
  EXPECT_EQ(code_of([&] { store->for_each_task(group_of(*store), [](const TaskRecord&) {}); }),
            ExitCode::BadInput);
}

TEST(SqliteFaults, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder / "text") << std::string(5000, 'x');
  EXPECT_EQ(code_of([&] { open_store((folder / "text").string()); }), ExitCode::BadInput);
  sqlite3* other = nullptr;
  ASSERT_EQ(::sqlite3_open((folder / "other.db").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(other, "CREATE TABLE t(x)", nullptr, nullptr, nullptr), SQLITE_OK);
  ::sqlite3_close(other);
  EXPECT_EQ(code_of([&] { open_store((folder / "other.db").string()); }), ExitCode::BadInput);
  EXPECT_EQ(code_of([&] { open_store((folder / "no" / "store.db").string()); }),
            ExitCode::Resources);
  EXPECT_EQ(code_of([&] { open_store("mysql://host/db"); }), ExitCode::Usage);
  EXPECT_EQ(
      code_of([&] { open_store((folder / "none.db").string(), {.access = Access::ReadOnly}); }),
      ExitCode::BadInput);
  EXPECT_FALSE(fs::exists(folder / "none.db"));
}

TEST(SqliteFaults, ANewerSchemaIsRefusedAndAnOlderOneMigrated) {
  const TemporaryFolder folder;
  const std::string path = folder / "store.db";
  fill_until_full(path);
  std::vector<const char*> steps(schema_steps().begin(), schema_steps().end());
  steps.push_back("CREATE TABLE convoy_later(x @INT@); INSERT INTO convoy_later VALUES(7)");
  {
    SqliteSession session(path, {});
    EXPECT_EQ(code_of([&] { prepare_schema(session, Access::ReadOnly, steps); }), ExitCode::Usage);
    prepare_schema(session, Access::ReadWrite, steps);
    prepare_schema(session, Access::ReadWrite, steps);
    EXPECT_EQ(session.run("SELECT x FROM convoy_later", {}).size(), 1u);
  }
  try {
    open_store(path);
    ADD_FAILURE() << "a newer schema was opened";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("schema 2"), std::string::npos) << error.sentence();
  }
}

TEST(SqliteFaults, AFailedMigrationLeavesTheOldSchema) {
  const TemporaryFolder folder;
  const fs::path path = folder / "store.db";
  fill_until_full(path);
  const std::string content = content_of(path);
  std::vector<const char*> steps(schema_steps().begin(), schema_steps().end());
  steps.push_back("DROP TABLE convoy_parts; SELECT broken");
  EXPECT_NE(code_of([&] {
              SqliteSession session(path, {});
              prepare_schema(session, Access::ReadWrite, steps);
            }),
            ExitCode::Done);
  EXPECT_EQ(content_of(path), content);
}

TEST(SqliteFaults, UsesTheLogOnLocalFileSystemsOnly) {
  EXPECT_TRUE(is_local_file_system(0xEF53));
  for (const int64_t network : {0x6969, 0x517B, 0x0BD00BD0, 0x65735546, 0x47504653, 0x01021997})
    EXPECT_FALSE(is_local_file_system(network));
  EXPECT_FALSE(is_local_file_system(0xFF534D42));
  const TemporaryFolder folder;
  const fs::path path = folder / "store.db";
  fill_until_full(path);
  SqliteSession session(path, {});
  EXPECT_EQ(session.uses_write_ahead_log(), is_local_file_system(file_system_type(folder.path())));
}

int refuse_control(int, int, ...) {
  errno = ENOSYS;
  return -1;
}

TEST(SqliteFaults, AFileSystemWithoutLocksIsNamed) {
  const TemporaryFolder folder;
  sqlite3_vfs* const vfs = ::sqlite3_vfs_find(nullptr);
  vfs->xSetSystemCall(vfs, "fcntl", reinterpret_cast<sqlite3_syscall_ptr>(&refuse_control));
  try {
    open_store(folder / "store.db", {});
    ADD_FAILURE() << "a store without locks was opened";
  } catch (const IoError& error) {
    EXPECT_NE(error.sentence().find("has no file locks"), std::string::npos) << error.sentence();
  }
  vfs->xSetSystemCall(vfs, "fcntl", nullptr);
}

// The child process holds the write lock until it is killed.
TEST(SqliteFaults, ALockEndsWithItsProcessAndWaitingHasALimit) {
  const TemporaryFolder folder;
  const fs::path path = folder / "store.db";
  fill_until_full(path);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    SqliteSession session(path, {});
    session.begin(Begin::Write);
    session.run("DELETE FROM convoy_groups", {});
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  try {
    open_store(path, {.busy_limit = std::chrono::milliseconds(100)});
    ADD_FAILURE() << "a locked store was opened";
  } catch (const IoError& error) {
    EXPECT_NE(error.sentence().find("locked by another process"), std::string::npos);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(open_store(path)->groups().size(), 1u);
}

// A connection of its own to SQLite, which takes locks as another process would.
class OtherConnection {
 public:
  explicit OtherConnection(const fs::path& path) {
    EXPECT_EQ(::sqlite3_open(path.c_str(), &database_), SQLITE_OK);
  }
  ~OtherConnection() { ::sqlite3_close(database_); }
  void run(const char* sql) const {
    EXPECT_EQ(::sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  }

 private:
  sqlite3* database_ = nullptr;
};

// SQLite reports a busy database at once when the journal mode is changed; it does not call the
// handler that waits.
TEST(SqliteFaults, TheSwitchOfTheJournalWaitsForALock) {
  const TemporaryFolder folder;
  const fs::path path = folder / "store.db";
  for (const char* const lock : {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"}) {
    fs::remove(path);
    const OtherConnection other(path);
    other.run("PRAGMA journal_mode = DELETE; PRAGMA application_id = 0");
    other.run(lock);
    EXPECT_EQ(code_of([&] { open_store(path, {.busy_limit = std::chrono::milliseconds(50)}); }),
              ExitCode::Resources)
        << lock;
    std::thread free_later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      other.run("COMMIT");
    });
    EXPECT_EQ(code_of([&] { open_store(path); }), ExitCode::Done) << lock;
    free_later.join();
  }
}

// Each process creates the file, its log and its tables, or finds them partly created by another
// process.
TEST(SqliteFaults, ManyProcessesMakeOneStoreAtOnce) {
  constexpr int kRounds = 15;
  constexpr int kProcesses = 6;
  const TemporaryFolder folder;
  for (int round = 0; round < kRounds; ++round) {
    const fs::path path = folder / ("store-" + std::to_string(round));
    int gate[2];
    ASSERT_EQ(::pipe(gate), 0);
    std::vector<pid_t> children;
    for (int number = 0; number < kProcesses; ++number) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      ::close(gate[1]);
      char byte = 0;
      if (::read(gate[0], &byte, 1) < 0) ::_exit(1);  // until all write ends are closed
      const ExitCode code = code_of([&] {
        const auto store = open_store(path, {.rollback_journal = round % 5 == 4});
        add_tasks(*store, group_of(*store), 20);
      });
      ::_exit(static_cast<int>(code));
    }
    ::close(gate[0]);
    ::close(gate[1]);
    for (const pid_t child : children) {
      int status = -1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status) << " in round " << round;
    }
    EXPECT_EQ(open_store(path, {.rollback_journal = round % 5 == 4})->counts(1).open, 20);
  }
}

// A test whose folder is a mounted tmpfs of 2 MiB. It is skipped where mounting is not allowed.
class OwnFileSystem : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=2m") != 0)
      GTEST_SKIP() << "mounting a file system needs root";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }

  TemporaryFolder folder_;
  bool mounted_ = false;
};

TEST_F(OwnFileSystem, AFullDiskLosesNothing) {
  const std::string path = folder_ / "store.db";
  std::string before;
  {
    const auto store = open_store(path);
    const int64_t group = group_of(*store);
    add_tasks(*store, group, 400);
    int64_t finished = 0;
    const auto finish_next = [&] {
      const Finish finish{.task = finished + 1, .result = {.payload = std::string(9'000, 'x')}};
      store->finish({&finish, 1});
      ++finished;
    };
    EXPECT_EQ(code_of([&] {
                while (finished < 400) finish_next();
              }),
              ExitCode::Resources);
    ASSERT_GT(finished, 10);
    EXPECT_EQ(store->counts(group).done, finished);
    ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
    finish_next();
    EXPECT_EQ(store->counts(group).done, finished);
  }
  EXPECT_EQ(code_of([&] { content_of(path); }), ExitCode::Done);
}

TEST_F(OwnFileSystem, AReadOnlyFolderIsKnownBeforeAnyWorkAndCanBeShown) {
  const std::string path = folder_ / "store.db";
  fill_until_full(path);
  ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
  EXPECT_EQ(code_of([&] { open_store(path); }), ExitCode::Resources);
  EXPECT_EQ(code_of([&] { open_store(folder_ / "new.db"); }), ExitCode::Resources);
  const auto store = open_store(path, {.access = Access::ReadOnly});
  EXPECT_EQ(store->counts(1).failed, 1);
  EXPECT_EQ(code_of([&] { store->reopen_failed(1); }), ExitCode::Resources);
}

}  // namespace
}  // namespace convoy::jobs
