// SPDX-License-Identifier: Apache-2.0
//
// Estimates the memory that a worker of data processing will take.
#pragma once

#include <string>

#include "convoy/apps/front/process/process_workers.h"
#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/model_facts.h"

namespace convoy::apps {

// One line for people: the bytes of a worker by parts. When a worker has less memory, the line says
// so and what to change. `settings`: with a settled dtype. Reads the model's config.json. Throws
// DataError.
std::string worker_memory(const settings::ProcessSettings& settings,
                          const process::ModelFacts& model, const ProcessWorkers& workers);

}  // namespace convoy::apps
