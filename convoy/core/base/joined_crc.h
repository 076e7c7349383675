// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace convoy {

// Returns crc32c() of two texts, one behind the other, from the crc32c() of each and the length of
// the second.
uint32_t joined_crc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace convoy
