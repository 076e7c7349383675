// SPDX-License-Identifier: Apache-2.0
//
// Submits the complete text of a job to its engine, by the engine's own tool.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/launch/submit/submit_settings.h"

namespace convoy::launch {

// Runs sbatch or kubectl with `text` on its stdin and returns the job's id. Blocks until the tool
// ends. Throws ConfigError with the tool's message when the tool is missing or refuses.
std::string submit_job(const SubmitSettings& settings, const std::string& text);

// Replaces this process by `bash script`: an MPI job has no queue and runs in this terminal.
// Returns only by throwing ConfigError.
[[noreturn]] void become_mpi_job(const std::filesystem::path& script);

}  // namespace convoy::launch
