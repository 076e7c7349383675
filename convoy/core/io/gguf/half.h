// SPDX-License-Identifier: Apache-2.0
//
// Conversions of fp16 and bf16: to fp32 exactly, and from fp32 to the nearest number, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace convoy::gguf {

inline float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fffu) << 13;
  constexpr uint32_t kExponent = 0x7c00u << 13;
  if ((rest & kExponent) == kExponent)  // infinities and NaNs
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x7fffffu));
  if ((rest & kExponent) == 0)  // zero and subnormal numbers
    return std::bit_cast<float>(
        sign | std::bit_cast<uint32_t>(static_cast<float>(rest >> 13) * 0x1.0p-24f));
  return std::bit_cast<float>(sign | (rest + ((127u - 15u) << 23)));
}

inline uint16_t half_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (size >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (size < 0x38800000u) {
    // A subnormal result: adding 0.5 puts size * 2^24, rounded, into the low bits.
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (size >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((size - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float float_of_bfloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline uint16_t bfloat_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 64u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace convoy::gguf
