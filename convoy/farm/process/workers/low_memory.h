// SPDX-License-Identifier: Apache-2.0
//
// Implements engine.low_memory: chooses the step of the memory ladder on which a worker runs.
#pragma once

#include <string>

#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/model_facts.h"

namespace convoy::process {

// `settings.model.dtype` must be settled. If low_memory is set, chooses the number of rows and
// texts that a worker computes at a time, its KV blocks and its types, so that it needs at most
// memory_gib. Settings that the user has set do not change. Returns a description of the choice for
// people; empty = low_memory is not set. Throws ConfigError if not even the last step of the ladder
// fits.
std::string fit_memory(settings::ProcessSettings& settings, const ModelFacts& model);

}  // namespace convoy::process
