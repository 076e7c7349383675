// SPDX-License-Identifier: Apache-2.0
//
// A permutation that is a pure function of its words (seed, epoch, ...): no generator state to
// save.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace convoy::data {

// A Fisher-Yates shuffle of 0 .. count-1. The random number at position i is mix_seed(words..., i).
std::vector<int64_t> seeded_permutation(int64_t count, std::initializer_list<uint64_t> words);

}  // namespace convoy::data
