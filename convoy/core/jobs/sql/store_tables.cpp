// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sql/store_tables.h"

#include <fmt/format.h>

#include <array>

#include "convoy/core/base/text_as.h"
#include "convoy/core/jobs/sql/rows.h"

namespace convoy::jobs {
namespace {

// Ranges that were never claimed have no row: they are the units from next_unit on. convoy_ranges
// holds leased and returned ranges, convoy_parts the finished ones of tasks without a result.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE convoy_groups(
  number @KEY@, name TEXT NOT NULL, workload TEXT NOT NULL, version TEXT NOT NULL, crc @INT@ NOT NULL,
  UNIQUE(name, workload, version));
CREATE TABLE convoy_tasks(
  number @KEY@, group_number @INT@ NOT NULL, id @BLOB@ NOT NULL, parameters TEXT NOT NULL, priority @INT@ NOT NULL,
  units @INT@ NOT NULL, next_unit @INT@ NOT NULL, units_done @INT@ NOT NULL, state @INT@ NOT NULL,
  text_crc @INT@ NOT NULL, crc @INT@ NOT NULL, UNIQUE(group_number, id));
CREATE INDEX convoy_tasks_to_hand_out ON convoy_tasks(group_number, priority DESC, number)
  WHERE state = 0 AND next_unit < units;
CREATE INDEX convoy_tasks_by_state ON convoy_tasks(group_number, state);
CREATE INDEX convoy_tasks_complete ON convoy_tasks(group_number, state, number) WHERE state = 0 AND units_done = units;
CREATE TABLE convoy_ranges(
  number @KEY@, task @INT@ NOT NULL, first @INT@ NOT NULL, count @INT@ NOT NULL, attempt @INT@ NOT NULL,
  worker TEXT NOT NULL, expires @INT@ NOT NULL, crc @INT@ NOT NULL);
CREATE INDEX convoy_ranges_by_expiry ON convoy_ranges(expires);
CREATE INDEX convoy_ranges_by_task ON convoy_ranges(task);
CREATE TABLE convoy_parts(
  task @INT@ NOT NULL, first @INT@ NOT NULL, count @INT@ NOT NULL, payload @BLOB@ NOT NULL, crc @INT@ NOT NULL,
  PRIMARY KEY(task, first));
CREATE TABLE convoy_results(
  task @INT@ PRIMARY KEY, kind @INT@ NOT NULL, payload @BLOB@ NOT NULL, failure @BLOB@ NOT NULL, crc @INT@ NOT NULL);
)sql";

constexpr const char* kFormer = R"sql(
CREATE TABLE IF NOT EXISTS convoy_former(
  number @KEY@, task @INT@ NOT NULL, kind @INT@ NOT NULL, payload @BLOB@ NOT NULL, failure @BLOB@ NOT NULL,
  replaced @INT@ NOT NULL, crc @INT@ NOT NULL);
CREATE INDEX IF NOT EXISTS convoy_former_by_task ON convoy_former(task);
)sql";

constexpr const char* kNotes = R"sql(
CREATE TABLE IF NOT EXISTS convoy_notes(
  number @KEY@, task @INT@ NOT NULL, key TEXT NOT NULL, payload @BLOB@ NOT NULL, crc @INT@ NOT NULL,
  UNIQUE(task, key));
)sql";

// Another process may have created the table before this process got the lock. PostgreSQL's
// has_table() is not called again, because it may answer from a cache of this transaction.
void make_table(SqlSession& session, const char* table, const char* script) {
  if (session.has_table(table)) return;
  session.lock_schema();
  session.run_script(script);
}

constexpr std::array<const char*, 1> kSteps = {kVersion1};

int64_t stored_version(SqlSession& session) {
  if (!session.has_table("convoy_meta")) return 0;
  const std::vector<SqlRow> rows =
      session.run("SELECT value FROM convoy_meta WHERE key = 'schema_version'", {});
  const std::string* const text =
      rows.size() == 1 ? std::get_if<std::string>(&rows[0].at(0)) : nullptr;
  const int64_t version = text == nullptr ? 0 : text_as<int64_t>(*text).value_or(0);
  if (version < 1) throw_damaged(session.name(), "its schema version cannot be read");
  return version;
}

void refuse_newer(const SqlSession& session, int64_t found, int64_t wanted) {
  if (found <= wanted) return;
  throw ConfigError(
      fmt::format("the job store has schema {}, this Convoy reads up to {}", found, wanted),
      {.file = session.name(), .hint = "use the newer Convoy that made it, or another store"});
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

}  // namespace

std::string with_types(std::string script, const ColumnTypes& types) {
  replace_all(script, "@KEY@", types.key);
  replace_all(script, "@INT@", types.integer);
  replace_all(script, "@BLOB@", types.bytes);
  return script;
}

std::span<const char* const> schema_steps() { return kSteps; }

void make_former_table(SqlSession& session) { make_table(session, "convoy_former", kFormer); }

void make_notes_table(SqlSession& session) { make_table(session, "convoy_notes", kNotes); }

void prepare_schema(SqlSession& session, Access access, std::span<const char* const> steps) {
  const int64_t wanted = static_cast<int64_t>(steps.size());
  session.begin(access == Access::ReadOnly ? Begin::Read : Begin::DurableWrite);
  try {
    if (access == Access::ReadWrite) session.lock_schema();
    const int64_t found = stored_version(session);
    refuse_newer(session, found, wanted);
    if (access == Access::ReadOnly && found == 0)
      throw DataError("there is no job store",
                      {.file = session.name(), .hint = "run the work once before showing it"});
    if (access == Access::ReadOnly && found < wanted)
      throw ConfigError(fmt::format("the job store has the old schema {}", found),
                        {.file = session.name(), .hint = "run the work once before showing it"});
    if (access == Access::ReadWrite) {
      if (found == 0)
        session.run_script("CREATE TABLE convoy_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL)");
      for (int64_t version = found; version < wanted; ++version) session.run_script(steps[version]);
      // A row is written at every opening, so that a read-only store is detected before any work.
      session.run(
          "INSERT INTO convoy_meta(key, value) VALUES('schema_version', $1) "
          "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
          {std::to_string(wanted)});
    }
    session.commit();
  } catch (...) {
    session.rollback();
    throw;
  }
}

}  // namespace convoy::jobs
