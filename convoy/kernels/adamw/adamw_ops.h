// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for adamw_update.
#pragma once

#include "convoy/kernels/adamw/adamw_update.h"

namespace convoy::kernels {

struct AdamWOps {
  void (*update)(const std::vector<AdamWTensors>& parameters, const AdamWStep& step);  // not empty
};

extern const AdamWOps kAdamWCpu;
extern const AdamWOps kAdamWAten;  // any device
extern const AdamWOps kAdamWCuda;

}  // namespace convoy::kernels
