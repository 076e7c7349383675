// SPDX-License-Identifier: Apache-2.0
//
// Which elements dropout drops: the same function for CPUs and GPUs.
#pragma once

#include <stdint.h>

namespace convoy::kernels {

// Element i is dropped where drop_hash(rule, i) < dropped_below.
struct DropRule {
  uint32_t key_low = 0;
  uint32_t key_high = 0;
  uint32_t dropped_below = 0;
  float scale = 1;  // of what is kept
};

// Two rounds of a multiply-xorshift mixer, with the key before and between: the constants are
// those of the "lowbias32" search (C. Wellons, hash-prospector; bias 0.107). 32 bits wide, so that
// eight or sixteen elements go through a vector unit at a time. Elements beyond 2^32 repeat with
// another key.
constexpr uint32_t kDropFactor1 = 0x21f0aaadu;
constexpr uint32_t kDropFactor2 = 0xd35a2d97u;

constexpr uint32_t drop_mix(uint32_t word) {
  word = (word ^ (word >> 16)) * kDropFactor1;
  word = (word ^ (word >> 15)) * kDropFactor2;
  return word ^ (word >> 15);
}
constexpr uint32_t drop_hash(const DropRule& rule, uint32_t low, uint32_t high) {
  return drop_mix(drop_mix(low ^ rule.key_low) ^ (rule.key_high + high * kDropFactor1));
}

}  // namespace convoy::kernels
