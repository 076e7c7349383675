// SPDX-License-Identifier: Apache-2.0
//
// The machine of this process, for the formulas and rules of sizing/.
#pragma once

#include "convoy/machine/device/rank_device.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::recipes {

// The machine with this device. A CPU has its total memory, including memory that programs use now.
// A GPU has no memory size.
sizing::Machine compute_machine(const device::RankDevice& rank_device);

}  // namespace convoy::recipes
