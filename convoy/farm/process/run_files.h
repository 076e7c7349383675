// SPDX-License-Identifier: Apache-2.0
//
// The files that the workers of a run read beside the ledger: its settings, and the prompts and
// schemas as they were when it was planned.
#pragma once

#include <filesystem>

#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::process {

// Writes the prompts to FOLDER/prompts/NAME.txt, and schemas to FOLDER/schemas/NAME.json.
// FOLDER/config.yaml is written elsewhere, with the run folder. Throws IoError.
void write_prompts(const std::filesystem::path& run_folder, const PipelinePlan& plan);

// Reads the plan in the run folder's config.yaml, and the prompts and schemas beside it. Throws
// ConfigError, DataError.
PipelinePlan read_pipeline_plan(const std::filesystem::path& run_folder);

}  // namespace convoy::process
