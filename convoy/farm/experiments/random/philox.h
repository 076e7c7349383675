// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC'11): 128
// bits from a 128-bit counter and a 64-bit key, without state. It uses plain integers and is the
// reference that the vector kernels match bit for bit. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace convoy::experiments {

using PhiloxWords = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr std::array<uint32_t, 2> kPhiloxMultipliers = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::array<uint32_t, 2> kPhiloxKeySteps = {0x9E3779B9u, 0xBB67AE85u};

// The key of round `round`, counted from 0.
constexpr PhiloxKey philox_round_key(PhiloxKey key, uint32_t round) {
  return {key[0] + round * kPhiloxKeySteps[0], key[1] + round * kPhiloxKeySteps[1]};
}

constexpr PhiloxWords philox_round(PhiloxWords counter, PhiloxKey round_key) {
  const uint64_t even = uint64_t{kPhiloxMultipliers[0]} * counter[0];
  const uint64_t odd = uint64_t{kPhiloxMultipliers[1]} * counter[2];
  return {static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ round_key[0], static_cast<uint32_t>(odd),
          static_cast<uint32_t>(even >> 32) ^ counter[3] ^ round_key[1],
          static_cast<uint32_t>(even)};
}

constexpr PhiloxWords philox4x32(PhiloxWords counter, PhiloxKey key, uint32_t rounds) {
  for (uint32_t round = 0; round < rounds; ++round)
    counter = philox_round(counter, philox_round_key(key, round));
  return counter;
}

}  // namespace convoy::experiments
