// SPDX-License-Identifier: Apache-2.0
//
// Finds settings that no request could fulfil, before the run starts instead of once per row.
#pragma once

#include <string>

#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/model_facts.h"

namespace convoy::process {

// Throws ConfigError for a stop string without letters, and if there are fewer KV blocks than the
// longest text of a stage needs with a prompt of one token.
void require_possible_requests(const settings::ProcessSettings& settings, const ModelFacts& model);

// A warning about texts longer than the model's positions, which are possible but probably a
// mistake. Empty: no warning.
std::string request_warnings(const settings::ProcessSettings& settings, const ModelFacts& model);

}  // namespace convoy::process
