// SPDX-License-Identifier: Apache-2.0
//
// How much a worker does at a time where the user has not settled it.
#pragma once

#include <cstdint>

#include "convoy/core/settings/process_settings.h"
#include "convoy/generate/scheduler/engine_defaults.h"

namespace convoy::process {

int64_t rows_in_flight(const settings::WorkerSettings& settings, scheduler::Hardware hardware);

// The number of texts that the engine generates together, of `rows` rows.
int64_t texts_together(const settings::ProcessSettings& settings, int64_t rows,
                       scheduler::Hardware hardware);

}  // namespace convoy::process
