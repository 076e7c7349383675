// SPDX-License-Identifier: Apache-2.0
//
// Reads the rows of a damaged SQLite store that are still readable.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "convoy/core/jobs/recover_store.h"
#include "convoy/core/jobs/sql/recovery.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"

namespace convoy::jobs {

// Recovers a file; see recover_store().
Recovery recover_sqlite(const std::filesystem::path& path, const StoreOptions& options);

// Visits every readable row of the table once, by ascending number; skips rows on damaged pages.
void for_each_readable_row(SqliteSession& session, const RecoveredTable& table,
                           const std::function<void(const SqlRow&)>& visit);

}  // namespace convoy::jobs
