// SPDX-License-Identifier: Apache-2.0
//
// The memory that a training holds on its device, and the settings to lower when it does not fit.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/optim/adamw.h"

namespace convoy::recipes {

struct HeldMemory {
  int64_t frozen_bytes = 0;     // weights that are not trained
  int64_t trained_bytes = 0;    // weights that are trained
  int64_t gradient_bytes = 0;   // gradients of the trained parameters
  int64_t optimizer_bytes = 0;  // states and master weights
};
// Memory shared by several tensors counts once. Either argument may be null when it does not exist
// yet.
HeldMemory held_memory(nn::CausalLm* model, const optim::AdamW* optimizer);

// "cuda:0 is full: 1.20 GiB frozen weights, ..., 60.1 GiB activations and buffers", with the
// current values of settings that would lower it. `peak_bytes`: peak memory of all tensors on the
// device.
IoError full_device(const std::string& device, const HeldMemory& held, int64_t peak_bytes,
                    const settings::TrainSettings& settings);

}  // namespace convoy::recipes
