// SPDX-License-Identifier: Apache-2.0
//
// The numbers that GGUF has for the types of metadata.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convoy::gguf {

inline constexpr uint32_t kUint32Type = 4;
inline constexpr uint32_t kInt32Type = 5;
inline constexpr uint32_t kFloat32Type = 6;
inline constexpr uint32_t kTruthType = 7;
inline constexpr uint32_t kTextType = 8;
inline constexpr uint32_t kListType = 9;
inline constexpr uint32_t kUint64Type = 10;
inline constexpr uint32_t kFloat64Type = 12;

// Size of a number or a truth value; 0 for every other type.
constexpr size_t value_bytes(uint32_t type) {
  constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof(kBytes) / sizeof(kBytes[0]) ? kBytes[type] : 0;
}

constexpr bool is_signed(uint32_t type) {
  return type == 1 || type == 3 || type == kInt32Type || type == 11;
}

}  // namespace convoy::gguf
