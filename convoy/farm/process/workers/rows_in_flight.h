// SPDX-License-Identifier: Apache-2.0
//
// The number of rows and texts that a worker computes at a time, if the user has not set it.
#pragma once

#include <cstdint>

#include "convoy/core/settings/process_settings.h"
#include "convoy/generate/scheduler/engine_defaults.h"

namespace convoy::process {

int64_t rows_in_flight(const settings::WorkerSettings& settings, scheduler::Hardware hardware);

// The number of texts that the engine generates together for `rows` rows.
int64_t texts_together(const settings::ProcessSettings& settings, int64_t rows,
                       scheduler::Hardware hardware);

}  // namespace convoy::process
