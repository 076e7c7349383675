// SPDX-License-Identifier: Apache-2.0
//
// JSON Schemas that the texts of a stage must match. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "convoy/core/settings/process_settings.h"

namespace convoy::process {

// Schemas as JSON, by stage: "generate", "evaluate", "improve". A stage without one is absent.
using StageSchemas = std::map<std::string, std::string>;

// Reads the files that the settings name, and makes the schema of the word `scores`. Throws
// ConfigError that names the setting.
StageSchemas read_stage_schemas(const settings::ProcessSettings& settings);

// Throws ConfigError that names the setting: for a stage that is not run, for a judge's schema that
// may leave out a criterion of the weights, and, unless servers write the texts, for a schema that
// cannot be honoured.
void check_stage_schemas(const settings::ProcessSettings& settings, const StageSchemas& schemas);

}  // namespace convoy::process
