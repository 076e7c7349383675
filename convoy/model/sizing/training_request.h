// SPDX-License-Identifier: Apache-2.0
//
// Makes the request for a memory estimate from the settings of a training.
#pragma once

#include <string>

#include "convoy/core/settings/train_settings.h"
#include "convoy/model/sizing/known_models.h"
#include "convoy/model/sizing/memory_estimate.h"

namespace convoy::sizing {

// The request for the run of these settings in `dtype`. `batch_size: auto` counts as one row.
EstimateRequest request_in(const settings::TrainSettings& settings, const Machine& machine,
                           const std::string& dtype);

// Under parallel.strategy: auto, sets the first strategy that fits, which the training chooses too;
// the last one where none fits.
void choose_sharing(const architecture::DecoderSpec& model, const settings::TrainSettings& settings,
                    const Machine& machine, EstimateRequest& request);

// Under gradient_checkpointing: auto, sets the least recomputation that fits; request_in() assumes
// the most.
void settle_recompute(const architecture::DecoderSpec& model,
                      const settings::TrainSettings& settings, int64_t device_bytes,
                      EstimateRequest& request);

}  // namespace convoy::sizing
