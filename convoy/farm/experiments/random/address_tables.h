// SPDX-License-Identifier: Apache-2.0
//
// The part of Philox's rounds that depends on key, stream and slot, computed once for many guesses
// and used by philox_lanes.inl. Immutable after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/random/address_constants.h"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments {

// 32-bit values, stored in 64 bits so that they can be broadcast to lanes.
struct BlockWords {
  uint64_t first = 0, third = 0, fourth = 0;
};

struct AddressTables : AddressConstants {
  // The tables are valid for guesses that have the same upper 32 bits as `guess`.
  AddressTables(PhiloxKey key, Stream stream, Precision precision, uint64_t guess,
                uint32_t num_blocks);

  std::vector<BlockWords> blocks;
};

// Splits the guesses into parts that one AddressTables can serve, and calls run(first, count) for
// each part in order.
template <class Run>
void for_each_table(uint64_t first, uint64_t count, Run&& run) {
  constexpr uint64_t kGuessesPerTable = uint64_t{1} << 32;
  while (count > 0) {
    const uint64_t part = std::min(count, kGuessesPerTable - first % kGuessesPerTable);
    run(first, part);
    first += part;
    count -= part;
  }
}

}  // namespace convoy::experiments
