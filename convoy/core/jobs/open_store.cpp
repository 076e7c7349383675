// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/postgres/connection_url.h"
#include "convoy/core/jobs/postgres/postgres_session.h"
#include "convoy/core/jobs/sql/sql_store.h"
#include "convoy/core/jobs/sql/store_tables.h"
#include "convoy/core/jobs/sqlite/file_system.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"

namespace convoy::jobs {
namespace {

// Up to this size a store is checked whole, in half a second; larger ones row by row when read.
constexpr uintmax_t kCheckedWholeBytes = 32 << 20;

std::unique_ptr<JobStore> open_sqlite(const std::filesystem::path& path,
                                      const StoreOptions& options) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  const bool check = !error && bytes > 0 && bytes <= kCheckedWholeBytes;
  auto session = std::make_unique<SqliteSession>(path, options);
  if (check) session->check_integrity();
  prepare_schema(*session, options.access);
  auto store = std::make_unique<SqlStore>(std::move(session), options.busy_limit);
  // Read-only stores are not checked here: each damaged row is found when it is read, and all other
  // rows can still be shown.
  if (check && options.access == Access::ReadWrite) store->verify_all();
  return store;
}

std::unique_ptr<JobStore> open_postgres(const std::string& url, const StoreOptions& options) {
  auto session = std::make_unique<PostgresSession>(url, options);
  prepare_schema(*session, options.access);
  return std::make_unique<SqlStore>(std::move(session), options.server_limit, options.keep_waiting);
}

}  // namespace

bool on_network_file_system(const std::string& url) {
  if (url.find("://") != std::string::npos || names_postgres(url)) return false;
  try {
    const std::filesystem::path folder = std::filesystem::absolute(sqlite_path(url)).parent_path();
    return !is_local_file_system(file_system_type(folder));
  } catch (const IoError&) {
    return false;
  }
}

std::unique_ptr<JobStore> open_store(const std::string& url, const StoreOptions& options) {
  if (names_postgres(url)) return open_postgres(url, options);
  return open_sqlite(sqlite_path(url), options);
}

}  // namespace convoy::jobs
