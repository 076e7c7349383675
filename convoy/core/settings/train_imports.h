// SPDX-License-Identifier: Apache-2.0
//
// The configurations of other programs that a training takes settings from: DeepSpeed's and
// accelerate's files, FSDP of TrainingArguments, NUM_GPUS.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/deepspeed_file.h"
#include "convoy/core/settings/launch_request.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// The contents of all sources of a training, each read once whatever the number of ranks.
struct TrainDocuments {
  config::Documents sources;
  std::vector<DeepSpeedFacts> deepspeed;
  LaunchRequest launch_request;
};

// The readers of those configurations. They fill `documents`, which must outlive them.
std::vector<config::Import> train_imports(TrainDocuments& documents);

// Checks imported values that involve several keys. `ranks`: number in the whole job; 0 = unknown.
void check_imports(const std::vector<DeepSpeedFacts>& files, int64_t ranks,
                   const TrainSettings& settings, const config::Resolved& resolved,
                   config::ErrorList& errors);

}  // namespace convoy::settings
