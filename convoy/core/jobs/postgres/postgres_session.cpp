// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/postgres/postgres_session.h"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/postgres/connection_url.h"
#include "convoy/core/jobs/postgres/libpq.h"
#include "convoy/core/jobs/sql/rows.h"
#include "convoy/core/jobs/sql/store_tables.h"

namespace convoy::jobs {
namespace {

// Numbers of types from PostgreSQL's pg_type.dat, which never change.
constexpr Oid kBytes = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;

constexpr int kBinary = 1;
// This many answers of any content fit into the socket's buffers, so that neither side waits for
// the other to read.
constexpr size_t kPipelineLength = 128;
constexpr int64_t kSchemaLock = 0x436F6E766F794A53;  // "ConvoyJS"

std::string without_braces(std::string_view sql) {
  std::string text(sql);
  std::erase_if(text, [](char character) { return character == '{' || character == '}'; });
  return text;
}

// True when the server refuses permanently, so that a retry is useless. libpq gives only the text.
bool refuses_for_good(const std::string& said) {
  const auto has = [&](const char* words) { return said.find(words) != std::string::npos; };
  if (has("fe_sendauth")) return true;  // no password was given
  // Errors in the connection text, which libpq itself reports.
  if (has("invalid connection option") || has("in connection info string")) return true;
  if (!has("FATAL")) return false;
  return !has("starting up") && !has("shutting down") && !has("recovery") && !has("too many") &&
         !has("connection slots") && !has("terminating connection") && !has("crash");
}

}  // namespace

class PostgresSession::Answer {
 public:
  Answer(const Libpq& libpq, PGresult* result) : libpq_(libpq), result_(result) {}
  ~Answer() { libpq_.clear(result_); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  const PGresult* get() const { return result_; }

 private:
  const Libpq& libpq_;
  PGresult* result_;
};

// A row of parameters in libpq's form. Borrows the texts.
class PostgresSession::Arguments {
 public:
  explicit Arguments(std::span<const SqlValue> parameters) : numbers_(parameters.size()) {
    for (size_t index = 0; index < parameters.size(); ++index) {
      const SqlValue& value = parameters[index];
      std::string_view bytes;
      if (const int64_t* const number = std::get_if<int64_t>(&value)) {
        numbers_[index] = ::htobe64(static_cast<uint64_t>(*number));
        bytes = {reinterpret_cast<const char*>(&numbers_[index]), sizeof(uint64_t)};
        types_.push_back(kInt8);
      } else if (const std::string* const text = std::get_if<std::string>(&value)) {
        bytes = *text;
        types_.push_back(kText);
      } else {
        bytes = std::get<Bytes>(value).data;
        types_.push_back(kBytes);
      }
      values_.push_back(bytes.data());
      lengths_.push_back(static_cast<int>(bytes.size()));
      formats_.push_back(kBinary);
    }
  }

  int count() const { return static_cast<int>(values_.size()); }
  const Oid* types() const { return types_.data(); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  std::vector<uint64_t> numbers_;
  std::vector<Oid> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

PostgresSession::PostgresSession(std::string url, const StoreOptions& options)
    : libpq_(std::make_unique<Libpq>()),
      url_(std::move(url)),
      name_(without_secrets(url_)),
      busy_limit_ms_(options.busy_limit.count()) {
  const auto deadline = std::chrono::steady_clock::now() + options.busy_limit;
  for (;;) {
    try {
      connect();
      return;
    } catch (const RetryTransaction& error) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0 || (options.keep_waiting && !options.keep_waiting(left)))
        throw IoError(error.what(), error.location());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

PostgresSession::~PostgresSession() { disconnect(); }

void PostgresSession::disconnect() noexcept {
  if (connection_ != nullptr) libpq_->finish(connection_);
  connection_ = nullptr;
  statements_.clear();
}

void PostgresSession::connect() {
  disconnect();
  const std::string user_timeout = std::to_string(std::max<int64_t>(busy_limit_ms_, 1'000));
  // libpq lets later words win: the URL may override these.
  const std::array<const char*, 9> words = {"fallback_application_name",
                                            "connect_timeout",
                                            "tcp_user_timeout",
                                            "keepalives_idle",
                                            "keepalives_interval",
                                            "keepalives_count",
                                            "client_encoding",
                                            "dbname",
                                            nullptr};
  const std::array<const char*, 9> values = {"convoy", "5",    user_timeout.c_str(), "10",   "5",
                                             "3",      "UTF8", url_.c_str(),         nullptr};
  connection_ = libpq_->connectdb_params(words.data(), values.data(), 1);
  if (connection_ == nullptr)
    throw IoError("no memory for a connection to PostgreSQL",
                  {.hint = "end other programs of this machine"});
  if (libpq_->status(connection_) != CONNECTION_OK) throw_lost();
  libpq_->set_notice_processor(
      connection_, [](void*, const char*) {}, nullptr);
  // The server disconnects a client that is gone, stopped or unreachable, so that no row stays
  // locked by it.
  execute(
      fmt::format("SET default_transaction_isolation = 'read committed'; SET lock_timeout = {0}; "
                  "SET idle_in_transaction_session_timeout = 30000; SET tcp_keepalives_idle = 10; "
                  "SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
                  "SET tcp_user_timeout = 30000",
                  busy_limit_ms_));
}

void PostgresSession::begin(Begin) {
  if (connection_ == nullptr || libpq_->status(connection_) != CONNECTION_OK) connect();
  execute("BEGIN");
}

void PostgresSession::commit() { execute("COMMIT"); }

void PostgresSession::rollback() noexcept {
  if (connection_ == nullptr || libpq_->transaction_status(connection_) == PQTRANS_IDLE) return;
  libpq_->clear(libpq_->exec(connection_, "ROLLBACK"));
  if (libpq_->transaction_status(connection_) != PQTRANS_IDLE) disconnect();
}

void PostgresSession::execute(const std::string& sql) {
  const Answer answer(*libpq_, libpq_->exec(connection_, sql.c_str()));
  check(answer);
}

std::string PostgresSession::prepared(std::string_view sql, std::span<const SqlValue> parameters) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) return known->second;
  const std::string name = fmt::format("convoy_{}", statements_.size());
  const Arguments arguments(parameters);
  const Answer answer(*libpq_,
                      libpq_->prepare(connection_, name.c_str(), without_braces(sql).c_str(),
                                      arguments.count(), arguments.types()));
  check(answer);
  statements_.emplace(std::string(sql), name);
  return name;
}

std::vector<SqlRow> PostgresSession::run(std::string_view sql,
                                         std::span<const SqlValue> parameters) {
  const std::string statement = prepared(sql, parameters);
  const Arguments arguments(parameters);
  const Answer answer(
      *libpq_,
      libpq_->exec_prepared(connection_, statement.c_str(), arguments.count(), arguments.values(),
                            arguments.lengths(), arguments.formats(), kBinary));
  check(answer);
  std::vector<SqlRow> rows;
  collect(answer, rows);
  return rows;
}

std::vector<SqlRow> PostgresSession::run_many(std::string_view sql,
                                              std::span<const SqlRow> parameters) {
  std::vector<SqlRow> rows;
  if (parameters.empty()) return rows;
  const std::string statement = prepared(sql, parameters[0]);
  for (size_t begin = 0; begin < parameters.size(); begin += kPipelineLength)
    run_pipeline(statement,
                 parameters.subspan(begin, std::min(kPipelineLength, parameters.size() - begin)),
                 rows);
  return rows;
}

// Runs the statement once per row of parameters, all in one round trip.
void PostgresSession::run_pipeline(const std::string& statement, std::span<const SqlRow> parameters,
                                   std::vector<SqlRow>& rows) {
  if (libpq_->enter_pipeline_mode(connection_) != 1) throw_lost();
  for (const SqlRow& row : parameters) {
    const Arguments arguments(row);
    if (libpq_->send_query_prepared(connection_, statement.c_str(), arguments.count(),
                                    arguments.values(), arguments.lengths(), arguments.formats(),
                                    kBinary) != 1)
      throw_lost();
  }
  if (libpq_->pipeline_sync(connection_) != 1) throw_lost();
  std::string state;
  std::string message;
  // Each statement's answer is followed by a null answer; the end of the pipeline has a status of
  // its own.
  for (size_t answered = 0; answered <= parameters.size();) {
    const Answer answer(*libpq_, libpq_->get_result(connection_));
    if (answer.get() == nullptr) {
      if (libpq_->status(connection_) != CONNECTION_OK) throw_lost();
      continue;
    }
    ++answered;
    const ExecStatusType status = libpq_->result_status(answer.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_FATAL_ERROR && state.empty()) {
      const char* const code = libpq_->result_error_field(answer.get(), PG_DIAG_SQLSTATE);
      const char* const text = libpq_->result_error_field(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
      state = code == nullptr ? "08006" : code;
      message = text == nullptr ? libpq_->error_message(connection_) : text;
      if (libpq_->status(connection_) != CONNECTION_OK) throw_lost();
    }
    if (status == PGRES_TUPLES_OK) collect(answer, rows);
  }
  if (libpq_->exit_pipeline_mode(connection_) != 1) throw_lost();
  if (!state.empty()) throw_failure(state, message);
}

void PostgresSession::collect(const Answer& answer, std::vector<SqlRow>& rows) const {
  const PGresult* const result = answer.get();
  const int num_rows = libpq_->num_tuples(result);
  const int num_columns = libpq_->num_fields(result);
  for (int row = 0; row < num_rows; ++row) {
    SqlRow& values = rows.emplace_back();
    for (int column = 0; column < num_columns; ++column) {
      const std::string_view bytes(libpq_->get_value(result, row, column),
                                   static_cast<size_t>(libpq_->get_length(result, row, column)));
      const Oid type = libpq_->field_type(result, column);
      if (libpq_->get_is_null(result, row, column) != 0) throw_damaged(name_, "a column is null");
      if (type == kInt8 && bytes.size() == sizeof(uint64_t)) {
        uint64_t number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        values.emplace_back(static_cast<int64_t>(::be64toh(number)));
      } else if (type == kText) {
        values.emplace_back(std::string(bytes));
      } else {
        values.emplace_back(Bytes{std::string(bytes)});
      }
    }
  }
}

void PostgresSession::run_script(const std::string& sql) {
  const std::string text =
      with_types(sql, {.key = "bigserial PRIMARY KEY", .integer = "bigint", .bytes = "bytea"});
  execute(text);
}

bool PostgresSession::has_table(const std::string& table) {
  return !run("SELECT oid::bigint FROM pg_class WHERE oid = to_regclass($1)", {table}).empty();
}

void PostgresSession::lock_schema() {
  run("SELECT count(pg_advisory_xact_lock($1))", {kSchemaLock});
}

int64_t PostgresSession::now_ms() {
  return integer_at(run("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", {}).at(0),
                    0, name_);
}

void PostgresSession::check(const Answer& answer) {
  const ExecStatusType status =
      answer.get() == nullptr ? PGRES_FATAL_ERROR : libpq_->result_status(answer.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return;
  if (answer.get() == nullptr || libpq_->status(connection_) != CONNECTION_OK) throw_lost();
  const char* const state = libpq_->result_error_field(answer.get(), PG_DIAG_SQLSTATE);
  const char* const message = libpq_->result_error_field(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
  throw_failure(state == nullptr ? "08006" : state, message == nullptr ? "" : message);
}

void PostgresSession::throw_lost() {
  std::string said = strike_secrets(libpq_->error_message(connection_), url_);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  std::replace(said.begin(), said.end(), '\n', ' ');
  disconnect();
  if (refuses_for_good(said))
    throw IoError(fmt::format("PostgreSQL refused the connection: {}", said),
                  {.file = name_, .hint = "check the user, password and database of the URL"});
  throw RetryTransaction(
      fmt::format("PostgreSQL cannot be reached: {}", said),
      {.file = name_, .hint = "check that the server runs and accepts your connection"});
}

void PostgresSession::throw_failure(const std::string& state, const std::string& message) {
  const std::string said = strike_secrets(message, url_);
  const ErrorLocation location{.file = name_};
  const auto starts = [&](const char* text) { return state.starts_with(text); };
  // Appendix A of PostgreSQL's manual. 57P..: the server is shutting down or starting; 40...:
  // deadlock, serialisation failure.
  if (starts("08") || starts("57P") || starts("25P03")) {
    disconnect();
    throw RetryTransaction(fmt::format("PostgreSQL ended the connection: {}", said), location);
  }
  if (starts("40")) throw RetryTransaction(fmt::format("PostgreSQL: {}", said), location);
  if (starts("53") || starts("58"))
    throw IoError(fmt::format("PostgreSQL is out of disk space or has a disk error: {}", said),
                  {.file = name_,
                   .hint = "free space on the disk of the server, and run the same command again"});
  if (starts("55P03") || starts("57014"))
    throw IoError(
        fmt::format("a row was locked by another process for more than {} ms", busy_limit_ms_),
        {.file = name_,
         .hint = "look for a stopped process that uses the store; pg_stat_activity lists them"});
  if (starts("25006") || starts("42501"))
    throw IoError(fmt::format("the job store cannot be written: {}", said),
                  {.file = name_,
                   .hint = "name a user who may write to it, and no read-only copy of the server"});
  if (starts("XX") || starts("42") || starts("23"))
    throw_damaged(name_, fmt::format("{} ({})", said, state));
  throw IoError(fmt::format("PostgreSQL: {} ({})", said, state),
                {.file = name_, .hint = "the server's log tells more; run the same command again"});
}

}  // namespace convoy::jobs
