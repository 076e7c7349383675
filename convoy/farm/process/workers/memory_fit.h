// SPDX-License-Identifier: Apache-2.0
//
// engine.low_memory: which rung of the memory ladder a worker stands on.
#pragma once

#include <string>

#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/model_facts.h"

namespace convoy::process {

// `settings`: with a settled model.dtype. Settles, where low_memory is set, how many rows and texts
// a worker has at a time, its KV blocks and types, so that it stays within memory_gib; what the
// user has settled stays. Returns what was chosen, for people; empty = low_memory is not set.
// Throws ConfigError where not even the last rung fits.
std::string fit_memory(settings::ProcessSettings& settings, const ModelFacts& model);

}  // namespace convoy::process
