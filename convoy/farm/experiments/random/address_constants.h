// SPDX-License-Identifier: Apache-2.0
//
// The part of Philox's rounds that depends on key and stream alone, in the form that
// philox_lanes.inl reads on CPUs and GPUs. Plain data; AddressTables computes it.
#pragma once

#include <stdint.h>

namespace convoy::experiments {

struct AddressConstants {
  uint64_t guess_first = 0;  // c0 after round 1, without the guess's part
  uint64_t guess_third = 0;  // c2 after round 2, without the guess's part
  uint64_t keys[10][2] = {};
  uint64_t last_keys[2] = {};  // keys of the last round, in the upper halves
};

}  // namespace convoy::experiments
