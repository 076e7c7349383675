// SPDX-License-Identifier: Apache-2.0
//
// One worker of `convoy process`: a model behind an engine, and the stages of the run's
// configuration.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"

namespace convoy::recipes {

// Parameters of the worker beside its task, which is in its environment.
struct ProcessRowsRequest {
  std::filesystem::path run_folder;
  std::string devices = "cpu";   // "cpu", or "cuda" for the one visible GPU
  int64_t workers_on_host = 1;   // workers that share its CPUs
  bool tell_busy_cores = false;  // logs when other programs use the cores
};

// Works until no row of the run is open, or until a stop is requested. Blocks. Throws as
// process::run_row_worker_process() and load_model().
void process_rows(const ProcessRowsRequest& request, const Log& log);

}  // namespace convoy::recipes
