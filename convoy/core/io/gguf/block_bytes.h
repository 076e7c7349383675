// SPDX-License-Identifier: Apache-2.0
//
// Little-endian numbers in GGUF's blocks.
#pragma once

#include <cstdint>

#include "convoy/core/io/gguf/half.h"

namespace convoy::gguf {

inline uint16_t u16_at(const uint8_t* block) {
  return static_cast<uint16_t>(block[0] | static_cast<uint16_t>(block[1] << 8));
}
inline uint32_t u32_at(const uint8_t* block) {
  return static_cast<uint32_t>(u16_at(block)) | static_cast<uint32_t>(u16_at(block + 2)) << 16;
}
inline float half_at(const uint8_t* block) { return float_of_half(u16_at(block)); }

}  // namespace convoy::gguf
