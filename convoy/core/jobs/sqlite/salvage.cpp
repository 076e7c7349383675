// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sqlite/salvage.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/time_text.h"
#include "convoy/core/jobs/sql/rows.h"
#include "convoy/core/jobs/sql/sql_store.h"
#include "convoy/core/jobs/sql/store_tables.h"

namespace convoy::jobs {
namespace {

namespace fs = std::filesystem;

// SQLite's files of one store: the file itself, its log, its rollback journal, the index of the
// log.
constexpr std::array<const char*, 4> kSuffixes = {"", "-wal", "-journal", "-shm"};

fs::path with_suffix(const fs::path& path, const std::string& suffix) {
  return path.string() + suffix;
}

void remove_store(const fs::path& path) {
  for (const char* const suffix : kSuffixes) fs::remove(with_suffix(path, suffix));
}

// Merges the log into the file, as far as its damage allows, and checks that no other process has
// the store open: such a process would go on writing to the replaced file.
void take_alone(const fs::path& path, const StoreOptions& options) {
  sqlite3* database = nullptr;
  int code = ::sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  ::sqlite3_busy_timeout(database, static_cast<int>(options.busy_limit.count()));
  if (code == SQLITE_OK)
    code = ::sqlite3_exec(database, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT",
                          nullptr, nullptr, nullptr);
  ::sqlite3_close_v2(database);
  if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED)
    throw IoError(
        "the job store is in use by another process",
        {.file = path.string(), .hint = "end the sweeps that use it, then run this again"});
}

fs::path name_aside(const fs::path& path) {
  const std::string time = utc_time_text(std::time(nullptr), "%Y%m%d_%H%M%S");
  fs::path aside = fmt::format("{}.damaged-{}", path.string(), time);
  for (int number = 2; fs::exists(aside); ++number)
    aside = fmt::format("{}.damaged-{}-{}", path.string(), time, number);
  return aside;
}

void copy_store(const fs::path& from, const fs::path& to) {
  for (const char* const suffix : {"", "-wal", "-journal"})
    if (fs::exists(with_suffix(from, suffix)))
      fs::copy_file(with_suffix(from, suffix), with_suffix(to, suffix));
}

bool has_tables(SqliteSession& session) {
  return session.has_table("convoy_groups") && session.has_table("convoy_tasks");
}

// The first page has the header and the root page of each table. All stores create their tables in
// the same order in a new file, so a new store's first page fits, except for tables added later.
void put_new_first_page(const fs::path& path) {
  const fs::path fresh = with_suffix(path, ".page");
  remove_store(fresh);
  {
    SqliteSession session(fresh, {.rollback_journal = true});
    prepare_schema(session, Access::ReadWrite);
  }
  std::string page = read_file(fresh);
  remove_store(fresh);
  constexpr size_t kPageBytes = 4096, kNumPagesAt = 28, kFreeListAt = 32, kFreeListBytes = 8;
  std::string bytes = read_file(path);
  if (bytes.size() < kPageBytes || page.size() < kPageBytes) return;
  page.resize(kPageBytes);
  const size_t num_pages = bytes.size() / kPageBytes;
  for (size_t byte = 0; byte < 4; ++byte)
    page[kNumPagesAt + byte] = static_cast<char>(num_pages >> (24 - 8 * byte));
  page.replace(kFreeListAt, kFreeListBytes, kFreeListBytes, '\0');
  bytes.replace(0, kPageBytes, page);
  write_file_atomic(path, bytes);
}

std::unique_ptr<SqliteSession> open_damaged(const fs::path& path) {
  try {
    auto session = std::make_unique<SqliteSession>(path, StoreOptions{.access = Access::ReadOnly});
    if (has_tables(*session)) return session;
  } catch (const DataError&) {
  }
  return nullptr;
}

// Throws DataError when the file cannot be read at all.
std::unique_ptr<SqliteSession> open_source(const fs::path& work) {
  if (auto session = open_damaged(work)) return session;
  for (const char* const suffix : {"-wal", "-journal", "-shm"})
    fs::remove(with_suffix(work, suffix));
  put_new_first_page(work);
  if (auto session = open_damaged(work)) return session;
  throw DataError("this file contains no readable data of a job store",
                  {.hint = "move it away and run the work again"});
}

void refuse_newer(SqliteSession& source) {
  try {
    prepare_schema(source, Access::ReadOnly);
  } catch (const DataError&) {
    // The version cannot be read, so it is not known to be newer.
  }
}

int64_t last_number(SqliteSession& session, std::string_view table) {
  constexpr int64_t kGuess = 100'000;
  for (const std::string& sql :
       {fmt::format("SELECT rowid FROM {} NOT INDEXED ORDER BY rowid DESC LIMIT 1", table),
        fmt::format("SELECT seq FROM sqlite_sequence WHERE name = '{}'", table)}) {
    try {
      const std::vector<SqlRow> rows = session.run(sql, {});
      if (!rows.empty()) return integer_at(rows[0], 0, session.name());
    } catch (const DataError&) {
      // The next statement may read other pages.
    }
  }
  return kGuess;
}

void copy_rows(SqliteSession& source, SqliteSession& target, Recovery& recovery) {
  for (const RecoveredTable& table : recovered_tables()) {
    if (!source.has_table(std::string(table.name))) continue;
    if (table.name == "convoy_former") make_former_table(target);
    if (table.name == "convoy_notes") make_notes_table(target);
    const std::string insert = insert_statement(table) + " ON CONFLICT DO NOTHING";
    for_each_readable_row(source, table, [&](const SqlRow& row) {
      if (table.is_sound(row))
        target.run(insert, row);
      else
        ++recovery.dropped_rows;
    });
  }
}

// Copies the times when sweeps were created and last run. Without them sweeps are shown as the
// oldest.
void copy_times(SqliteSession& source, SqliteSession& target) {
  for (const SqlRow& row : target.run("SELECT number FROM convoy_groups", {})) {
    Group group;
    group.number = integer_at(row, 0, target.name());
    const std::string key = fmt::format("group_times_{}", group.number);
    try {
      const std::vector<SqlRow> found =
          source.run("SELECT value FROM convoy_meta NOT INDEXED WHERE key = $1", {key});
      if (found.empty()) continue;
      decode_times(found[0], group, source.name());
      target.run("INSERT INTO convoy_meta(key, value) VALUES($1, $2)", {key, found[0].at(0)});
    } catch (const DataError&) {
      // The target is then a store without times.
    }
  }
}

bool is_sound(const fs::path& path, const StoreOptions& options) {
  try {
    auto session = std::make_unique<SqliteSession>(path, options);
    session->check_integrity();
    prepare_schema(*session, Access::ReadWrite);
    SqlStore(std::move(session), options.busy_limit).verify_all();
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void fill(const fs::path& fresh, const fs::path& work, const StoreOptions& options,
          Recovery& recovery) {
  const std::unique_ptr<SqliteSession> source = open_source(work);
  refuse_newer(*source);
  SqliteSession target(fresh, options);
  prepare_schema(target, Access::ReadWrite);
  target.begin(Begin::DurableWrite);
  copy_rows(*source, target, recovery);
  copy_times(*source, target);
  settle(target, recovery);
  target.commit();
}

}  // namespace

void for_each_readable_row(SqliteSession& session, const RecoveredTable& table,
                           const std::function<void(const SqlRow&)>& visit) {
  constexpr int64_t kRowsPerPage = 512;
  const std::string sql =
      fmt::format("SELECT rowid, {} FROM {} NOT INDEXED WHERE rowid > $1 ORDER BY rowid LIMIT $2",
                  table.columns, table.name);
  int64_t last = 0, end = -1, wanted = kRowsPerPage;
  for (;;) {
    std::vector<SqlRow> rows;
    bool damaged = false;
    try {
      rows = session.run(sql, {last, wanted});
      // A page that is reached twice must not be read for ever.
      damaged = !rows.empty() && integer_at(rows[0], 0, session.name()) <= last;
    } catch (const DataError&) {
      damaged = true;
    }
    if (damaged && wanted > 1) {
      wanted = 1;
      continue;
    }
    if (damaged) {
      if (end < 0) end = last_number(session, table.name);
      if (++last > end) return;
      continue;
    }
    for (const SqlRow& row : rows) {
      last = std::max(last, integer_at(row, 0, session.name()));
      visit({row.begin() + 1, row.end()});
    }
    if (static_cast<int64_t>(rows.size()) < wanted) return;
    wanted = std::min(2 * wanted, kRowsPerPage);
  }
}

Recovery recover_sqlite(const fs::path& path, const StoreOptions& options) {
  if (!fs::exists(path))
    throw DataError("there is no job store", {.file = path.string(), .hint = "check the path"});
  const fs::path fresh = with_suffix(path, ".recovering"), work = with_suffix(path, ".reading");
  Recovery recovery;
  recovery.was_sound = is_sound(path, options);
  if (recovery.was_sound) return recovery;
  try {
    take_alone(path, options);
    const fs::path aside = name_aside(path);
    copy_store(path, aside);
    recovery.kept_aside = aside.string();
    remove_store(fresh);
    remove_store(work);
    // The rows are read from a copy, because reading may write beside the file or repair its first
    // page.
    copy_store(aside, work);
    fill(fresh, work, options, recovery);
    remove_store(work);
    open_store(fresh.string(), options);  // throws where it is not sound
    // SQLite would apply the old log to the new file.
    for (const char* const suffix : {"-wal", "-journal", "-shm"})
      fs::remove(with_suffix(path, suffix));
    fs::rename(fresh, path);
    sync_folder(fs::absolute(path).parent_path());
  } catch (const fs::filesystem_error& error) {
    throw IoError(fmt::format("the job store could not be recovered: {}", error.what()),
                  {.file = path.string(), .hint = "check free space and permissions"});
  }
  return recovery;
}

}  // namespace convoy::jobs
