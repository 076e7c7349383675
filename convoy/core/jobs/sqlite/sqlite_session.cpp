// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sqlite/sqlite_session.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/sql/row_page.h"
#include "convoy/core/jobs/sql/rows.h"
#include "convoy/core/jobs/sql/store_tables.h"
#include "convoy/core/jobs/sqlite/file_system.h"

namespace convoy::jobs {
namespace {

constexpr int kOldestVersion = 3'035'000;       // the first version with RETURNING
constexpr int64_t kApplicationId = 0x436E764A;  // "CnvJ", in the file's header

// Text in "{...}" is for PostgreSQL only.
std::string without_braced(std::string_view sql) {
  std::string text;
  bool skip = false;
  for (const char character : sql) {
    if (character == '{') skip = true;
    if (!skip) text.push_back(character);
    if (character == '}') skip = false;
  }
  return text;
}

constexpr std::chrono::microseconds kFirstPause{100};
constexpr std::chrono::microseconds kLongestPause{5'000};

// Text or bytes of the column, valid until the next row.
std::string_view column_bytes(sqlite3_stmt* statement, int column, bool is_text) {
  const void* const data =
      is_text ? ::sqlite3_column_text(statement, column) : ::sqlite3_column_blob(statement, column);
  return {static_cast<const char*>(data == nullptr ? "" : data),
          static_cast<size_t>(::sqlite3_column_bytes(statement, column))};
}

void add_row(sqlite3_stmt* statement, std::vector<SqlRow>& rows) {
  const int num_columns = ::sqlite3_column_count(statement);
  SqlRow& row = rows.emplace_back();
  row.reserve(static_cast<size_t>(num_columns));
  for (int column = 0; column < num_columns; ++column) {
    const int type = ::sqlite3_column_type(statement, column);
    if (type == SQLITE_INTEGER)
      row.emplace_back(static_cast<int64_t>(::sqlite3_column_int64(statement, column)));
    else if (type == SQLITE_TEXT)
      row.emplace_back(std::string(column_bytes(statement, column, true)));
    else
      row.emplace_back(Bytes{std::string(column_bytes(statement, column, false))});
  }
}

std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char character : std::filesystem::absolute(path).string())
    uri += std::strchr("?#%", character) != nullptr
               ? fmt::format("%{:02X}", static_cast<unsigned char>(character))
               : std::string(1, character);
  return uri + "?immutable=1";
}

}  // namespace

SqliteSession::SqliteSession(std::filesystem::path path, const StoreOptions& options)
    : path_(std::move(path)), access_(options.access), busy_limit_ms_(options.busy_limit.count()) {
  try {
    open_file(options);
    configure(options);
  } catch (...) {
    close();
    throw;
  }
}

SqliteSession::~SqliteSession() {
  rollback();
  close();
}

// SQLite keeps a connection open until all its statements are finalised.
void SqliteSession::close() {
  for (const auto& [sql, statement] : statements_) ::sqlite3_finalize(statement.handle);
  ::sqlite3_close_v2(database_);
}

void SqliteSession::open_file(const StoreOptions& options) {
  if (::sqlite3_libversion_number() < kOldestVersion)
    throw ConfigError(fmt::format("wanted SQLite 3.35 or newer, found {}", ::sqlite3_libversion()),
                      {.hint = "install a newer libsqlite3"});
  const bool read_only = options.access == Access::ReadOnly;
  std::error_code ignored;
  if (read_only && !std::filesystem::exists(path_, ignored))
    throw DataError("there is no job store", {.file = path_.string(), .hint = "check the path"});
  const int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code =
      ::sqlite3_open_v2(path_.c_str(), &database_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) throw_failure(code);
  if (!read_only) return;
  set_busy_handler();
  const int readable = while_busy([&] {
    return ::sqlite3_exec(database_, "SELECT count(*) FROM sqlite_master", nullptr, nullptr,
                          nullptr);
  });
  if ((readable & 0xff) != SQLITE_CANTOPEN && (readable & 0xff) != SQLITE_READONLY) return;
  // A log needs files beside the store, which a read-only folder does not allow. Without a log the
  // file alone is complete.
  const auto log_bytes = std::filesystem::file_size(path_.string() + "-wal", ignored);
  if (!ignored && log_bytes > 0) throw_failure(readable);
  ::sqlite3_close_v2(database_);
  database_ = nullptr;
  const int again = ::sqlite3_open_v2(uri_of(path_).c_str(), &database_,
                                      flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nullptr);
  if (again != SQLITE_OK) throw_failure(again);
}

void SqliteSession::configure(const StoreOptions& options) {
  ::sqlite3_extended_result_codes(database_, 1);
  set_busy_handler();
  // A store may come from an untrusted source: its schema must not run code or reach other files.
  ::sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  execute(
      "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -64000; "
      "PRAGMA temp_store = MEMORY; PRAGMA synchronous = FULL");
  // Reads both at one moment: another process may be creating the store.
  run("BEGIN", {});
  const int64_t id = integer_at(run("PRAGMA application_id", {}).at(0), 0, name());
  const int64_t num_tables =
      integer_at(run("SELECT count(*) FROM sqlite_master", {}).at(0), 0, name());
  commit();
  if (id != kApplicationId && (id != 0 || num_tables != 0))
    throw DataError("this SQLite file is no job store",
                    {.file = name(), .hint = "name another file for the store"});
  if (options.access == Access::ReadOnly) return;
  choose_journal(options);
  if (id == 0) execute(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
}

void SqliteSession::choose_journal(const StoreOptions& options) {
  const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
  write_ahead_ = !options.rollback_journal && is_local_file_system(file_system_type(folder));
  // TRUNCATE commits by one change of the journal's length and syncs it; DELETE would not sync the
  // folder.
  const std::vector<SqlRow> rows =
      run(write_ahead_ ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = TRUNCATE", {});
  const std::string* const mode = rows.empty() ? nullptr : std::get_if<std::string>(&rows[0].at(0));
  const bool has_log = mode != nullptr && *mode == "wal";
  if (!write_ahead_ && has_log)
    throw IoError("the job store is in use by processes that keep a write-ahead log",
                  {.file = name(), .hint = "end them first, then open it over the network"});
  write_ahead_ = has_log;
  // The log grows to about 16 MB before it is copied into the file, which costs two more syncs.
  execute("PRAGMA wal_autocheckpoint = 4000");
}

// SQLite's own handler sleeps up to 100 ms at a time, far longer than our transactions take.
void SqliteSession::set_busy_handler() {
  ::sqlite3_busy_handler(
      database_,
      [](void* session, int) { return static_cast<SqliteSession*>(session)->wait_for_lock(); },
      this);
}

int SqliteSession::wait_for_lock() {
  if (std::chrono::steady_clock::now() >= busy_deadline_) return 0;
  std::this_thread::sleep_for(busy_pause_);
  busy_pause_ = std::min(2 * busy_pause_, kLongestPause);
  return 1;
}

// SQLite calls the busy handler for most locks, but returns an error at once when a read lock is
// upgraded to a write lock, as in the switch of the journal mode, and when processes that open a
// log at the same moment collide too often.
template <class Call>
int SqliteSession::while_busy(Call&& call) {
  busy_deadline_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_limit_ms_);
  busy_pause_ = kFirstPause;
  for (;;) {
    const int code = call();
    const int kind = code & 0xff;
    const bool busy = kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_PROTOCOL;
    if (!busy || wait_for_lock() == 0) return code;
  }
}

void SqliteSession::set_synchronous(bool full) {
  if (full == synchronous_full_) return;
  execute(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  synchronous_full_ = full;
}

void SqliteSession::begin(Begin kind) {
  // With a log, NORMAL does not wait for the disk, and the next FULL commit waits for everything.
  // Without one, NORMAL could damage the file.
  set_synchronous(!write_ahead_ || kind == Begin::DurableWrite);
  // Writes to a file that was unlinked would be lost with this process.
  int moved = 0;
  if (::sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
      moved != 0)
    throw IoError("the job store was moved or deleted while it was in use",
                  {.file = name(), .hint = "restore it, or start again with the same command"});
  run(kind == Begin::Read ? "BEGIN" : "BEGIN IMMEDIATE", {});
}

void SqliteSession::commit() { run("COMMIT", {}); }

void SqliteSession::rollback() noexcept {
  // Some failures, such as a full disk, have already rolled back.
  if (database_ != nullptr && ::sqlite3_get_autocommit(database_) == 0)
    ::sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
}

const SqliteSession::Statement& SqliteSession::prepared(std::string_view sql) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) return known->second;
  const std::string text = without_braced(sql);
  Statement statement;
  const int code = ::sqlite3_prepare_v3(database_, text.data(), static_cast<int>(text.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement.handle, nullptr);
  if (code != SQLITE_OK) throw_failure(code);
  const int num_parameters = ::sqlite3_bind_parameter_count(statement.handle);
  for (int number = 1; number <= num_parameters; ++number)
    statement.places.push_back(
        ::sqlite3_bind_parameter_index(statement.handle, fmt::format("${}", number).c_str()));
  return statements_.emplace(std::string(sql), std::move(statement)).first->second;
}

void SqliteSession::bind(const Statement& statement, std::span<const SqlValue> parameters) {
  CONVOY_INVARIANT(parameters.size() == statement.places.size(), "{} parameters for {} places",
                   parameters.size(), statement.places.size());
  for (size_t index = 0; index < parameters.size(); ++index) {
    const int place = statement.places[index];
    const SqlValue& value = parameters[index];
    int code = SQLITE_OK;
    // SQLite copies no text and no bytes, because the parameters outlive the run of the statement.
    if (const int64_t* const number = std::get_if<int64_t>(&value))
      code = ::sqlite3_bind_int64(statement.handle, place, *number);
    else if (const std::string* const text = std::get_if<std::string>(&value))
      code = ::sqlite3_bind_text64(statement.handle, place, text->data(), text->size(),
                                   SQLITE_STATIC, SQLITE_UTF8);
    else
      code = ::sqlite3_bind_blob64(statement.handle, place, std::get<Bytes>(value).data.data(),
                                   std::get<Bytes>(value).data.size(), SQLITE_STATIC);
    if (code != SQLITE_OK) throw_failure(code);
  }
}

void SqliteSession::collect(sqlite3_stmt* statement, std::vector<SqlRow>& rows) {
  const size_t num_before = rows.size();
  const int result = while_busy([&] {
    rows.resize(num_before);
    int code = SQLITE_OK;
    while ((code = ::sqlite3_step(statement)) == SQLITE_ROW) add_row(statement, rows);
    ::sqlite3_reset(statement);
    return code;
  });
  if (result != SQLITE_DONE) throw_failure(result);
}

std::vector<SqlRow> SqliteSession::run(std::string_view sql, std::span<const SqlValue> parameters) {
  const Statement& statement = prepared(sql);
  bind(statement, parameters);
  std::vector<SqlRow> rows;
  collect(statement.handle, rows);
  return rows;
}

std::vector<SqlRow> SqliteSession::run_many(std::string_view sql,
                                            std::span<const SqlRow> parameters) {
  const Statement& statement = prepared(sql);
  std::vector<SqlRow> rows;
  for (const SqlRow& row : parameters) {
    bind(statement, row);
    collect(statement.handle, rows);
  }
  return rows;
}

// Reads columns without asking SQLite for their types: that took a tenth of a long listing.
void SqliteSession::run_into(std::string_view sql, std::span<const SqlValue> parameters,
                             std::string_view kinds, RowPage& page) {
  const Statement& statement = prepared(sql);
  bind(statement, parameters);
  CONVOY_INVARIANT(::sqlite3_column_count(statement.handle) == static_cast<int>(kinds.size()),
                   "{} kinds for {} columns", kinds.size(),
                   ::sqlite3_column_count(statement.handle));
  const int result = while_busy([&] {
    page.clear(kinds.size());
    int code = SQLITE_OK;
    while ((code = ::sqlite3_step(statement.handle)) == SQLITE_ROW) {
      int column = 0;
      for (const char kind : kinds) {
        if (kind == 'i')
          page.add(::sqlite3_column_int64(statement.handle, column));
        else
          page.add(column_bytes(statement.handle, column, kind == 't'),
                   kind == 't' ? RowPage::Kind::Text : RowPage::Kind::Bytes);
        ++column;
      }
    }
    ::sqlite3_reset(statement.handle);
    return code;
  });
  if (result != SQLITE_DONE) throw_failure(result);
}

void SqliteSession::run_script(const std::string& sql) {
  const std::string text = with_types(
      sql, {.key = "INTEGER PRIMARY KEY AUTOINCREMENT", .integer = "INTEGER", .bytes = "BLOB"});
  // The script is not retried, because its first statements may have run.
  const int code = ::sqlite3_exec(database_, text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw_failure(code);
}

bool SqliteSession::has_table(const std::string& table) {
  return !run("SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1", {table}).empty();
}

int64_t SqliteSession::now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void SqliteSession::check_integrity() {
  const std::vector<SqlRow> rows = run("PRAGMA integrity_check(1)", {});
  const std::string* const text = rows.empty() ? nullptr : std::get_if<std::string>(&rows[0].at(0));
  if (text == nullptr) throw_damaged(name(), "its check returned nothing");
  if (*text != "ok") throw_damaged(name(), *text);
}

void SqliteSession::execute(const char* sql) {
  const int code =
      while_busy([&] { return ::sqlite3_exec(database_, sql, nullptr, nullptr, nullptr); });
  if (code != SQLITE_OK) throw_failure(code);
}

void SqliteSession::throw_failure(int code) const {
  const std::string said =
      database_ == nullptr ? ::sqlite3_errstr(code) : ::sqlite3_errmsg(database_);
  const ErrorLocation location{.file = name()};
  const auto with_hint = [&](const char* hint) {
    ErrorLocation hinted = location;
    hinted.hint = hint;
    return hinted;
  };
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
      throw_damaged(name(), said);
    case SQLITE_NOTADB:
      throw DataError("this file is no job store, or its beginning is damaged",
                      with_hint("name another file; `convoy sweep recover --store FILE` recovers "
                                "the readable rows of a store"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      throw IoError(
          fmt::format("the job store was locked by another process for more than {} ms",
                      busy_limit_ms_),
          with_hint("look for a stopped process that uses it; a killed one holds no lock"));
    case SQLITE_FULL:
      throw IoError("no space left for the job store", with_hint("free some space and run again"));
    case SQLITE_READONLY:
      // SQLite opens a file of a later format read-only; a flipped byte in the header looks the
      // same.
      if (code == SQLITE_READONLY && access_ == Access::ReadWrite &&
          ::access(path_.c_str(), W_OK) == 0)
        throw_damaged(name(), "its header names a format that SQLite cannot write");
      [[fallthrough]];
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw IoError(fmt::format("the job store cannot be opened for writing ({})", said),
                    with_hint("check that its folder exists and may be written"));
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_LOCK || code == SQLITE_IOERR_RDLOCK ||
          code == SQLITE_IOERR_CHECKRESERVEDLOCK)
        throw IoError(fmt::format("the file system of the job store has no file locks ({})", said),
                      with_hint("put the store on another disk, or use a PostgreSQL store; Lustre "
                                "has locks when it is mounted with -o flock"));
      [[fallthrough]];
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      throw IoError(
          fmt::format("the job store cannot be used: {} (code {}, errno {})", said, code,
                      database_ == nullptr ? 0 : ::sqlite3_system_errno(database_)),
          with_hint("check the store's disk with dmesg, or name a store on another disk"));
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA:
    case SQLITE_ERROR:
      // The statements are fixed and tested, so an error means that the tables are damaged.
      throw_damaged(name(), said);
    default:
      throw StateError(fmt::format("SQLite: {} (code {})", said, code), location);
  }
}

}  // namespace convoy::jobs
