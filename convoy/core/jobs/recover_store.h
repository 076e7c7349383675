// SPDX-License-Identifier: Apache-2.0
//
// Rebuilds a damaged store from its sound rows: rows with a correct checksum are kept, tasks that
// depended on lost rows are open again, and the same sweep computes them again.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/jobs/job_store.h"

namespace convoy::jobs {

struct Recovery {
  bool was_sound = false;
  int64_t groups = 0;   // left after the recovery
  int64_t tasks = 0;    // left after the recovery
  int64_t results = 0;  // left after the recovery
  // Number of tasks that lost their result or some of their ranges, and are open again.
  int64_t reopened = 0;
  // Number of damaged rows that were read and removed. Rows that cannot be read are not counted.
  int64_t dropped_rows = 0;
  // Number of groups whose name was damaged: now "recovered-NUMBER/METHOD", so that other sweeps
  // find their results.
  int64_t renamed_groups = 0;
  std::string kept_aside = {};  // SQLite: the file with all bytes as they were, beside the new one
};

// Leaves a sound store unchanged. SQLite: a new file replaces the old one in one step; until then
// the old one is unchanged. Damage of SQLite's own structure is handled page by page. PostgreSQL:
// the rows are repaired in one transaction. Blocks. Throws DataError when nothing can be read,
// ConfigError as open_store() does, and IoError, also for a store in use by other processes.
Recovery recover_store(const std::string& url, const StoreOptions& options = {});

}  // namespace convoy::jobs
