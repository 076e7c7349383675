// SPDX-License-Identifier: Apache-2.0
//
// What is sound of a damaged store, as a store again: rows whose checksum is right are kept, what
// depended on others is open again, so that the same sweep computes it anew.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/jobs/job_store.h"

namespace convoy::jobs {

struct Recovery {
  bool was_sound = false;
  int64_t groups = 0;   // after it
  int64_t tasks = 0;    // after it
  int64_t results = 0;  // after it
  // Tasks that lost their result, or ranges of it: they are open.
  int64_t reopened = 0;
  // Rows that were read and are damaged, and are in no table any more. What can not even be read is
  // not counted.
  int64_t dropped_rows = 0;
  // Groups whose name was damaged: now "recovered-NUMBER/METHOD", so that their results are found
  // by other sweeps.
  int64_t renamed_groups = 0;
  std::string kept_aside = {};  // SQLite: the file with all bytes as they were, beside the new one
};

// A store that is sound is left as it is. SQLite: a new file takes the place of the old one in one
// step; before that the old one is as it was. Damage of SQLite's own structure is worked around
// page by page. PostgreSQL: the rows are mended in one transaction. Blocks. Throws DataError where
// nothing of it can be read, ConfigError as open_store() does, and IoError, also for a store in use
// by other processes.
Recovery recover_store(const std::string& url, const StoreOptions& options = {});

}  // namespace convoy::jobs
