// SPDX-License-Identifier: Apache-2.0
//
// The machine of this process, for the formulas and rules of sizing/.
#pragma once

#include "convoy/machine/device/rank_device.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::recipes {

// A CPU with all of its memory, that of running programs too; a GPU without its memory.
sizing::Machine compute_machine(const device::RankDevice& rank_device);

}  // namespace convoy::recipes
