// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of a run are a pure function of counters, so a resumed run needs no stored
// generator state.
#pragma once

#include <cstdint>

namespace convoy::device {

struct SeedPoint {
  int64_t seed = 0;
  int64_t epoch = 0;
  int64_t step = 0;
  int64_t micro_batch = 0;  // within the whole step, over all ranks
};

// The key from which the random numbers of a micro-batch are drawn.
uint64_t draw_key(const SeedPoint& point);

}  // namespace convoy::device
