// SPDX-License-Identifier: Apache-2.0
//
// Random words that are a function of a key and of the place of an element: the same for CPUs and
// GPUs, in every order of calls and however elements are shared over ranks.
#pragma once

#include <stdint.h>

namespace convoy::kernels {

struct CounterKey {
  uint32_t low = 0;
  uint32_t high = 0;
};

constexpr CounterKey counter_key(uint64_t word) {
  return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
}

// Two rounds of a multiply-xorshift mixer, with the key mixed in before and between them: the
// constants come from the "lowbias32" search (C. Wellons, hash-prospector; bias 0.107). 32 bits
// wide, so that a vector unit hashes eight or sixteen elements at a time. Every 2^32 elements use
// another key.
constexpr uint32_t kMixFactor1 = 0x21f0aaadu;
constexpr uint32_t kMixFactor2 = 0xd35a2d97u;

constexpr uint32_t counter_mix(uint32_t word) {
  word = (word ^ (word >> 16)) * kMixFactor1;
  word = (word ^ (word >> 15)) * kMixFactor2;
  return word ^ (word >> 15);
}
// The hash of element high * 2^32 + low.
constexpr uint32_t counter_hash(CounterKey key, uint32_t low, uint32_t high) {
  return counter_mix(counter_mix(low ^ key.low) ^ (key.high + high * kMixFactor1));
}

}  // namespace convoy::kernels
