// SPDX-License-Identifier: Apache-2.0
//
// Copies the sweeps of one store and their results into another, which may have some of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"

namespace convoy::sweep {

struct MergeReport {
  int64_t sweeps = 0;
  int64_t cells = 0;                      // of the store that is read
  int64_t added = 0;                      // cells that the other one lacked
  int64_t results = 0;                    // that were copied
  int64_t known = 0;                      // results of both: that of `into` stays
  std::vector<std::string> skipped = {};  // groups with a damaged row
};

// Values and censored cells are copied with their times; failed and unfinished cells are open in
// `into`, and ranges of guesses are not copied. May be repeated. Throws what the stores throw.
MergeReport merge_store(jobs::JobStore& from, jobs::JobStore& into);

}  // namespace convoy::sweep
