// SPDX-License-Identifier: Apache-2.0
//
// Settings that no request could fulfil: found before the start, where they can be, and not by
// every row.
#pragma once

#include <string>

#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/model_facts.h"

namespace convoy::process {

// Throws ConfigError: a stop string without letters; fewer KV blocks than the longest text of a
// stage takes with a prompt of one token.
void require_possible_requests(const settings::ProcessSettings& settings, const ModelFacts& model);

// A warning about texts longer than the model's positions: possible, but probably a mistake. Empty:
// no warning.
std::string request_warnings(const settings::ProcessSettings& settings, const ModelFacts& model);

}  // namespace convoy::process
