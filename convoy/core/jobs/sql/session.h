// SPDX-License-Identifier: Apache-2.0
//
// One connection to a SQL database, as SqlStore uses it. Statements are written once for both
// dialects: parameters are $1, $2, ...; text in braces applies to PostgreSQL only (row locks). One
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::jobs {

struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

// There are no nulls: a column of any other type is damage.
using SqlValue = std::variant<int64_t, std::string, Bytes>;
using SqlRow = std::vector<SqlValue>;

// Lost connection, deadlock or server restart: the whole transaction may be retried.
class RetryTransaction : public IoError {
 public:
  using IoError::IoError;
};

class RowPage;  // row_page.h

enum class Begin {
  Read,
  Write,         // survives a kill; a power cut too once a later DurableWrite committed
  DurableWrite,  // survives a power cut when commit() returned
};

class SqlSession {
 public:
  virtual ~SqlSession() = default;

  // In SQLite, a write transaction excludes all other write transactions from here on and sees
  // their results. In PostgreSQL, it locks the rows that it names. Reconnects when the connection
  // was lost. Blocks.
  virtual void begin(Begin kind) = 0;
  virtual void commit() = 0;
  virtual void rollback() noexcept = 0;  // also when there is no transaction

  virtual std::vector<SqlRow> run(std::string_view sql, std::span<const SqlValue> parameters) = 0;
  // Runs the statement once per row of parameters. Returns the rows of all runs in order.
  virtual std::vector<SqlRow> run_many(std::string_view sql,
                                       std::span<const SqlRow> parameters) = 0;
  // Like run(), into a page, whose content is replaced. `kinds`: the types of the columns, i =
  // integer, t = text, b = bytes. A database that does not check types converts other types, which
  // the row's checksum then detects; an SQLite null becomes 0 or empty.
  virtual void run_into(std::string_view sql, std::span<const SqlValue> parameters,
                        std::string_view kinds, RowPage& page);
  // Runs several statements without parameters. The types @KEY@, @INT@, @BLOB@ are replaced by the
  // dialect's.
  virtual void run_script(const std::string& sql) = 0;
  virtual bool has_table(const std::string& table) = 0;
  // Excludes other processes until the transaction ends, also where begin() does not.
  virtual void lock_schema() = 0;

  virtual int64_t now_ms() = 0;                // the store's clock, since 1970
  virtual bool defers_durability() const = 0;  // false: Write is as good as DurableWrite
  virtual std::string name() const = 0;        // for people; without secrets

  std::vector<SqlRow> run(std::string_view sql, std::initializer_list<SqlValue> parameters) {
    return run(sql, std::span<const SqlValue>(parameters.begin(), parameters.size()));
  }
};

}  // namespace convoy::jobs
