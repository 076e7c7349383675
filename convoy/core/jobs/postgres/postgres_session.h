// SPDX-License-Identifier: Apache-2.0
//
// SqlSession over one connection to a PostgreSQL server. A lost connection ends in
// RetryTransaction, and begin() connects again. Locks are row locks of short transactions; the
// server ends the transactions of a client that is gone.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/session.h"

struct pg_conn;

namespace convoy::jobs {

class Libpq;

class PostgresSession : public SqlSession {
 public:
  // Throws ConfigError when libpq is missing, IoError when the server cannot be reached within the
  // busy limit. Blocks.
  PostgresSession(std::string url, const StoreOptions& options);
  ~PostgresSession() override;
  PostgresSession(const PostgresSession&) = delete;
  PostgresSession& operator=(const PostgresSession&) = delete;

  void begin(Begin kind) override;
  void commit() override;
  void rollback() noexcept override;
  using SqlSession::run;
  std::vector<SqlRow> run(std::string_view sql, std::span<const SqlValue> parameters) override;
  std::vector<SqlRow> run_many(std::string_view sql, std::span<const SqlRow> parameters) override;
  void run_script(const std::string& sql) override;
  bool has_table(const std::string& table) override;
  void lock_schema() override;
  int64_t now_ms() override;
  bool defers_durability() const override { return false; }
  std::string name() const override { return name_; }

 private:
  class Answer;
  class Arguments;

  void connect();
  void disconnect() noexcept;
  void execute(const std::string& sql);
  std::string prepared(std::string_view sql, std::span<const SqlValue> parameters);
  void run_pipeline(const std::string& statement, std::span<const SqlRow> parameters,
                    std::vector<SqlRow>& rows);
  void collect(const Answer& answer, std::vector<SqlRow>& rows) const;
  void check(const Answer& answer);
  [[noreturn]] void throw_failure(const std::string& state, const std::string& message);
  [[noreturn]] void throw_lost();

  std::unique_ptr<Libpq> libpq_;
  std::string url_;
  std::string name_;
  int64_t busy_limit_ms_;
  pg_conn* connection_ = nullptr;
  std::map<std::string, std::string, std::less<>> statements_;  // name by text, of this connection
};

}  // namespace convoy::jobs
