// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

// Collective. Blocks. The CRC32C of the values of all trained parameters in the order of their
// names: the same on every rank, and however the strategy deals parameters to ranks.
uint32_t values_checksum(parallel::Strategy& strategy);

}  // namespace convoy::recipes
