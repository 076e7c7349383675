// SPDX-License-Identifier: Apache-2.0
//
// The traced steps of a run folder: summed up, and as a file for Perfetto.
#pragma once

#include <filesystem>

#include "convoy/machine/profile/report.h"

namespace convoy::profile {

// Reads traces/, events.jsonl and run.json. Throws ConfigError for a run without traces, DataError
// for files that are no traces or events, IoError.
ProfiledRun read_profiled_run(const std::filesystem::path& run_folder);

// Writes the traces of all ranks, and the counters of devices at that time, into one file: `file`,
// or traces/run.perfetto-trace of the run if `file` is empty. Returns its path. Throws IoError.
std::filesystem::path write_perfetto_trace(const ProfiledRun& run, std::filesystem::path file = {});

}  // namespace convoy::profile
