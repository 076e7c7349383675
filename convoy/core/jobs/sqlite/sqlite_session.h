// SPDX-License-Identifier: Apache-2.0
//
// SqlSession over one SQLite file. The kernel releases its locks when the process ends.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/session.h"

struct sqlite3;
struct sqlite3_stmt;

namespace convoy::jobs {

class SqliteSession : public SqlSession {
 public:
  // Opens or creates the file. Throws DataError (no SQLite file, damaged), IoError.
  SqliteSession(std::filesystem::path path, const StoreOptions& options);
  ~SqliteSession() override;
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;

  void begin(Begin kind) override;
  void commit() override;
  void rollback() noexcept override;
  using SqlSession::run;
  std::vector<SqlRow> run(std::string_view sql, std::span<const SqlValue> parameters) override;
  std::vector<SqlRow> run_many(std::string_view sql, std::span<const SqlRow> parameters) override;
  void run_into(std::string_view sql, std::span<const SqlValue> parameters, std::string_view kinds,
                RowPage& page) override;
  void run_script(const std::string& sql) override;
  bool has_table(const std::string& table) override;
  void lock_schema() override {}  // begin() locks the file
  int64_t now_ms() override;
  bool defers_durability() const override { return write_ahead_; }
  std::string name() const override { return path_.string(); }

  // Runs SQLite's own check of the whole file. Throws DataError.
  void check_integrity();
  bool uses_write_ahead_log() const { return write_ahead_; }

 private:
  void close();
  void open_file(const StoreOptions& options);
  void configure(const StoreOptions& options);
  void choose_journal(const StoreOptions& options);
  void set_synchronous(bool full);
  void set_busy_handler();
  int wait_for_lock();  // returns 0 when the time limit is reached
  // Repeats `call` while the file is locked, up to the limit. Returns SQLite's code.
  template <class Call>
  int while_busy(Call&& call);
  struct Statement {
    sqlite3_stmt* handle = nullptr;
    std::vector<int> places;  // SQLite's index of $1, $2, ...: it numbers them as they appear
  };

  const Statement& prepared(std::string_view sql);
  void bind(const Statement& statement, std::span<const SqlValue> parameters);
  void collect(sqlite3_stmt* statement, std::vector<SqlRow>& rows);
  void execute(const char* sql);
  [[noreturn]] void throw_failure(int code) const;

  std::filesystem::path path_;
  Access access_;
  int64_t busy_limit_ms_;
  sqlite3* database_ = nullptr;
  std::map<std::string, Statement, std::less<>> statements_;  // by text
  // Deadline of the statement that is running.
  std::chrono::steady_clock::time_point busy_deadline_{};
  std::chrono::microseconds busy_pause_{};
  bool write_ahead_ = false;
  bool synchronous_full_ = true;
};

}  // namespace convoy::jobs
