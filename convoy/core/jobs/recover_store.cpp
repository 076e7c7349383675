// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/recover_store.h"

#include <fmt/format.h>

#include <cstdlib>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/postgres/connection_url.h"
#include "convoy/core/jobs/postgres/postgres_session.h"
#include "convoy/core/jobs/sql/recovery.h"
#include "convoy/core/jobs/sql/rows.h"
#include "convoy/core/jobs/sql/store_tables.h"
#include "convoy/core/jobs/sqlite/file_system.h"
#include "convoy/core/jobs/sqlite/salvage.h"

namespace convoy::jobs {
namespace {

void drop_damaged_rows(SqlSession& session, Recovery& recovery) {
  for (const RecoveredTable& table : recovered_tables()) {
    const std::string name(table.name);
    if (!session.has_table(name)) continue;
    std::string condition = "number = $1";
    if (table.columns.starts_with("task")) condition = "task = $1";
    if (table.num_key_columns == 2) condition += " AND first = $2";
    for (const SqlRow& row :
         session.run(fmt::format("SELECT {} FROM {}", table.columns, name), {})) {
      if (table.is_sound(row)) continue;
      ++recovery.dropped_rows;
      session.run(fmt::format("DELETE FROM {} WHERE {}", name, condition),
                  std::span(row).first(static_cast<size_t>(table.num_key_columns)));
    }
  }
}

void drop_damaged_times(SqlSession& session) {
  for (const SqlRow& row :
       session.run("SELECT key, value FROM convoy_meta WHERE key LIKE 'group_times_%'", {})) {
    Group group;
    const auto key = std::get<std::string>(row.at(0));
    group.number = std::strtoll(key.c_str() + key.rfind('_') + 1, nullptr, 10);
    try {
      decode_times({row.at(1)}, group, session.name());
    } catch (const DataError&) {
      session.run("DELETE FROM convoy_meta WHERE key = $1", {key});
    }
  }
}

// The server keeps its own files consistent; only manual changes damage rows.
Recovery recover_postgres(const std::string& url, const StoreOptions& options) {
  Recovery recovery;
  PostgresSession session(url, options);
  prepare_schema(session, Access::ReadWrite);
  session.begin(Begin::DurableWrite);
  try {
    drop_damaged_rows(session, recovery);
    drop_damaged_times(session);
    settle(session, recovery);
    session.commit();
    recovery.was_sound = recovery.dropped_rows == 0 && recovery.reopened == 0;
  } catch (...) {
    session.rollback();
    throw;
  }
  return recovery;
}

}  // namespace

Recovery recover_store(const std::string& url, const StoreOptions& options) {
  if (names_postgres(url)) return recover_postgres(url, options);
  return recover_sqlite(sqlite_path(url), options);
}

}  // namespace convoy::jobs
