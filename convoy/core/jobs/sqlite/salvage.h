// SPDX-License-Identifier: Apache-2.0
//
// What can be read of a damaged SQLite store.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "convoy/core/jobs/recover_store.h"
#include "convoy/core/jobs/sql/recovery.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"

namespace convoy::jobs {

// Recovery of a file; see recover_store().
Recovery recover_sqlite(const std::filesystem::path& path, const StoreOptions& options);

// Every row of the table that can be read, each once, by ascending number; those on damaged pages
// are passed over.
void for_each_readable_row(SqliteSession& session, const RecoveredTable& table,
                           const std::function<void(const SqlRow&)>& visit);

}  // namespace convoy::jobs
