// SPDX-License-Identifier: Apache-2.0
//
// Ranks that hold the same weights must go on holding the same bits. A rank whose weights differ
// (memory that flips bits, a device that computes wrongly, a collective that failed in silence)
// would go on training unnoticed, and a checkpoint might hold its weights by chance.
#pragma once

#include <cstdint>

#include "convoy/train/parallel/strategy.h"

namespace convoy::train {

// Collective. Compares the bits of the trained parameters between ranks that hold the same parts:
// first one checksum per rank; if these differ, one per parameter. The largest group of ranks that
// agree is right; among groups of one size the one with the lowest rank. Throws NumericError on
// every rank, naming the ranks that differ and the first parameter in which they do.
void check_weights(parallel::Strategy& strategy, int64_t step);

// Checks every `interval` steps. Does nothing if `interval` is 0, or if no two ranks hold the same
// parts.
void check_weights_when_due(parallel::Strategy& strategy, int64_t interval, int64_t step);

}  // namespace convoy::train
